// SPDX-License-Identifier: Apache-2.0
//
// Groups the launches of a program by the layers of its model, with the tensors and the cost of each.
#ifndef COMPILER_INSPECT_LAYERS_H
#define COMPILER_INSPECT_LAYERS_H

#include "compiler/inspect/Facts.h"
#include "compiler/inspect/Table.h"

#include <string>
#include <vector>

namespace mtc {

struct LayerFacts {
  std::string name;            // "": launches that belong to no single layer
  std::string shape;           // shape of the layer's result; "": unknown
  uint64_t parameters = 0;     // elements of the layer's variables, without variables of the optimizer
  std::vector<uint32_t> steps; // indices of the launches in the program, in order
  LaunchCost cost;             // at batch B on one device
};

// Returns the program that reports show: train_step, or the first of eval_step, predict and init that the plan has.
const mt::plan::Program *mainProgram(const mt::plan::Plan &plan);
// Returns the layers in the order of their first launches, without the all-reduces, which belong to no layer.
std::vector<LayerFacts> layersOf(const mt::plan::Plan &plan, const mt::plan::Program &program);

// Returns "?×32×32×16", with the element type unless it is f32. For a buffer without a shape in the plan, the bytes.
std::string shapeOf(const mt::plan::Buffer &buffer);
std::string shapeOf(const mt::plan::Variable &variable);
// Returns what a launch reads and writes: "?×784, 784×256, 256 → ?×256"; for several segments, their number and
// elements.
std::string operandsOf(const mt::plan::Plan &plan, const mt::plan::Program &program, const mt::plan::Step &step);

std::string kernelName(const mt::plan::Plan &plan, const mt::plan::Step &step); // or "all-reduce 3"
std::string kindName(const mt::plan::Plan &plan, const mt::plan::Step &step);   // or "all-reduce"
std::string layerName(const mt::plan::Plan &plan, const mt::plan::Step &step);  // or ""

} // namespace mtc

#endif
