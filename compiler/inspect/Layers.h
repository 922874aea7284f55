// SPDX-License-Identifier: Apache-2.0
//
// A plan by the layers of its model: which launches belong to a layer, what they read and write, and what they cost.
#ifndef COMPILER_INSPECT_LAYERS_H
#define COMPILER_INSPECT_LAYERS_H

#include "compiler/inspect/Facts.h"

#include <string>
#include <vector>

namespace mtc {

struct LayerFacts {
  std::string name;            // "": launches that belong to no single layer
  std::string shape;           // of its result; "": not known
  uint64_t parameters = 0;     // elements of its variables, the optimizer's excepted
  std::vector<uint32_t> steps; // of the program, in order
  LaunchCost cost;             // at batch B on one device
};

// The program that pictures are of: train_step, or of a plan that does not train what it has.
const mt::plan::Program *mainProgram(const mt::plan::Plan &plan);
// In the order in which the program first works for them; all-reduces are of no layer and left out.
std::vector<LayerFacts> layersOf(const mt::plan::Plan &plan, const mt::plan::Program &program);

// "?×32×32×16", with the type where it is not f32; a buffer whose plan does not say its shape by its bytes.
std::string shapeOf(const mt::plan::Buffer &buffer);
std::string shapeOf(const mt::plan::Variable &variable);
// What a launch reads and writes: "?×784, 784×256, 256 → ?×256"; of several segments their number and elements.
std::string operandsOf(const mt::plan::Plan &plan, const mt::plan::Program &program, const mt::plan::Step &step);

std::string kernelName(const mt::plan::Plan &plan, const mt::plan::Step &step); // or "all-reduce 3"
std::string kindName(const mt::plan::Plan &plan, const mt::plan::Step &step);   // or "all-reduce"
std::string layerName(const mt::plan::Plan &plan, const mt::plan::Step &step);  // or ""

// 1234567 as "1,234,567".
std::string grouped(uint64_t number);

} // namespace mtc

#endif
