// SPDX-License-Identifier: Apache-2.0
//
// The name, the cost and the measured time of each step of train_step, from a trace.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/plan/Plan.h"
#include "runtime/session/Session.h"

namespace mtrun {

// The name and the cost of a step of a program.
struct StepFacts {
  const char *name;  // name of the kernel, or "all-reduce"
  const char *kind;  // "matmul", "all_reduce"
  const char *layer; // "" if the step belongs to no single layer
  uint64_t flopsPerSample = 0, flopsFixed = 0, bytesPerSample = 0, bytesFixed = 0;
};
StepFacts factsOf(const Plan &plan, const mt::plan::Step &step);

// MT_INVALID: no step was traced.
Status profileOf(const Session &session, mtrun_profile &profile);
Status profileEntry(const Session &session, int32_t index, mtrun_profile_entry &entry);

} // namespace mtrun
