// SPDX-License-Identifier: Apache-2.0
//
// What the options --state and --split say of the arguments of a step.
#ifndef FRONTEND_STABLEHLO_STEPARGUMENTS_H
#define FRONTEND_STABLEHLO_STEPARGUMENTS_H

#include "frontend/training/TrainingOptions.h"

#include <cstdint>
#include <optional>

namespace mtc::stablehlo {

struct StepArgument {
  bool split = false;            // along its first axis; else it is state
  std::optional<int64_t> result; // that replaces the state; none: it stays as it is
  std::string name;              // empty: that of the file
};
using StepArguments = std::map<int64_t, StepArgument>; // by the number of the argument

// Returns an empty text, or what is wrong with the options.
std::string readStepArguments(const TrainingOptions &options, StepArguments &arguments);

} // namespace mtc::stablehlo

#endif
