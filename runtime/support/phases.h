// SPDX-License-Identifier: Apache-2.0
//
// How a program runs in micro-batches, by its tables (docs/exactness.md).
#ifndef MT_PHASES_H
#define MT_PHASES_H

#include "runtime/abi/plan_generated.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <vector>

namespace mtrun {

struct PhaseStep {
  uint32_t step; // of the program
  bool once;     // a launch that runs behind the last micro-batch only
  bool waits;    // for all threads of the device; an all-reduce brings its own barriers
};

// Runs for each micro-batch, from the first step to the last, before the next phase begins.
struct Phase {
  std::vector<PhaseStep> steps; // in the order of the program
  bool repeats = false;         // else all of them run once
};

// The phases of a program on a device that holds 2^`variant` shards at a time. The tables are those of a verified plan.
// MT_INVALID: too much of it needs the whole batch in the device's memory; names the layer.
Status phasesOf(const mt::plan::Plan &plan, const mt::plan::Program &program, uint32_t variant,
                std::vector<Phase> &phases);

} // namespace mtrun

#endif
