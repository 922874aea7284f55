// SPDX-License-Identifier: Apache-2.0
//
// Who is alive in the arena when: docs/inspect.md has the rule ("The liveness bound, computed again").
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
  uint32_t variant = 0;                // of the program: as many shards as a lone device computes at once
  std::vector<uint64_t> bytes;         // of each phase
  int64_t peak = 0;                    // the phase in which most bytes are alive
  int64_t firstStep = 0, lastStep = 0; // of that phase
  std::vector<AliveValue> values;      // alive at the peak, the largest first; values in one place count once
};

AliveFacts aliveOf(const mt::plan::Plan &plan, const ProgramFacts &facts);

} // namespace mtc

#endif
