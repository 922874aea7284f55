// SPDX-License-Identifier: Apache-2.0
//
// Which values are live in the arena in each phase: docs/inspect.md has the rule ("The liveness bound, computed
// again").
#ifndef COMPILER_INSPECT_ALIVE_H
#define COMPILER_INSPECT_ALIVE_H

#include "compiler/inspect/Facts.h"

namespace mtc {

struct AliveValue {
  std::string name, shape;
  int64_t firstStep, lastStep;
  uint64_t bytes;
};

struct AliveFacts {
  uint32_t variant = 0;                // of the program: of a device that computes all shards of a micro-batch
  std::vector<uint64_t> bytes;         // live bytes of each phase
  int64_t peak = 0;                    // the phase with the most live bytes
  int64_t firstStep = 0, lastStep = 0; // first and last step of that phase
  std::vector<AliveValue> values;      // live at the peak, the largest first; values in the same memory count once
};

AliveFacts aliveOf(const mt::plan::Plan &plan, const ProgramFacts &facts);

} // namespace mtc

#endif
