// SPDX-License-Identifier: Apache-2.0
//
// Splits a program into phases for micro-batches, from the tables of its plan (docs/exactness.md).
#ifndef MT_PHASES_H
#define MT_PHASES_H

#include "runtime/abi/plan_generated.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <vector>

namespace mtrun {

struct PhaseStep {
  uint32_t step; // index into the program's steps
  bool once;     // a launch that runs only for the last micro-batch
  bool waits;    // a barrier of all threads of the device comes first; an all-reduce has its own barriers
};

// All micro-batches run a phase from its first step to its last before the next phase begins.
struct Phase {
  std::vector<PhaseStep> steps; // indices in program order
  bool repeats = false;         // false: all steps of the phase run once
};

// Finds the phases of a program for a device that computes 2^`variant` shards at a time. The plan must be verified.
// MT_INVALID: too much of the program needs the whole batch at once; the message names the layer.
Status phasesOf(const mt::plan::Plan &plan, const mt::plan::Program &program, uint32_t variant,
                std::vector<Phase> &phases);

} // namespace mtrun

#endif
