// SPDX-License-Identifier: Apache-2.0
//
// What a trace of train_step says about each step of the program: names, costs and times.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/plan/Plan.h"
#include "runtime/session/Session.h"

namespace mtrun {

// What a step of a program is and costs.
struct StepFacts {
  const char *name;  // the kernel's, or "all-reduce"
  const char *kind;  // "matmul", "all_reduce"
  const char *layer; // "" if no single layer
  uint64_t flopsPerSample = 0, flopsFixed = 0, bytesPerSample = 0, bytesFixed = 0;
};
StepFacts factsOf(const Plan &plan, const mt::plan::Step &step);

// MT_INVALID: nothing was traced.
Status profileOf(const Session &session, mtrun_profile &profile);
Status profileEntry(const Session &session, int32_t index, mtrun_profile_entry &entry);

} // namespace mtrun
