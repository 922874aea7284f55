// SPDX-License-Identifier: Apache-2.0
//
// Which part of an optimizer's variables each device keeps if the devices divide them (ZeRO, stage 1), from the tables
// of a plan. A device updates only its part: the update stands between the two halves of an all-reduce.
#ifndef MT_OPTIMIZER_PARTS_H
#define MT_OPTIMIZER_PARTS_H

#include "runtime/abi/plan_generated.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <map>
#include <vector>

namespace mtrun {

// The first element of each device's part, and at the end the number of elements. Empty: each device has all of them.
using Parts = std::vector<int64_t>;

// Elements [begin, end).
struct ElementRange {
  int64_t begin, end;
};

// A launch that computes only a device's part of its segments.
struct DividedLaunch {
  std::vector<Parts> segments;
  // Before this step of the program all devices need the whole results; the number of steps: at the end.
  uint32_t gatherBefore = 0;
};

struct DividedProgram {
  std::map<uint32_t, DividedLaunch> launches; // by step
  // By step: the all-reduces whose result a device needs only in part, which is its chunk and these elements.
  std::map<uint32_t, std::vector<ElementRange>> scattered;
};

struct OptimizerParts {
  std::vector<Parts> variables; // by variable; empty: the devices do not divide the optimizer
  std::vector<DividedProgram> programs;

  bool divides(uint32_t variable) const { return !variables.empty() && !variables[variable].empty(); }
};

// Divides among `devices` devices each slot of the optimizer that has several elements and is no moving average. The
// plan must be verified. MT_INVALID: a kernel needs all elements of a slot; the message names both.
Status divideOptimizer(const mt::plan::Plan &plan, int devices, OptimizerParts &parts);

// Where the variables of device `device` lie in its memory, and how much memory they need.
struct VariablePlaces {
  std::vector<uint64_t> offsets; // by variable
  uint64_t bytes = 0;
};
VariablePlaces placeVariables(const mt::plan::Plan &plan, const OptimizerParts &parts, int device);

} // namespace mtrun

#endif
