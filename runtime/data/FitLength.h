// SPDX-License-Identifier: Apache-2.0
//
// Sequences in memory at the largest length of a plan for several.
#pragma once

#include "runtime/data/Table.h"
#include "runtime/plan/Plan.h"

namespace mtrun {

// A field whose samples have more or fewer positions than entry `index` of `program` gets as many: zeros behind shorter
// samples, and longer ones without the zeros that they end in. Other fields stay. MT_INVALID: a sample is longer.
Status fitLength(const Plan &plan, const char *program, uint32_t index, Field &field);

// Positions of a sample that lies at `sample` as a field of sequences in memory has it, up to the last that is not
// zero.
uint64_t usedPositions(const Field &field, const uint8_t *sample);

} // namespace mtrun
