// SPDX-License-Identifier: Apache-2.0
//
// Pads or cuts sequences in memory to the largest length of a plan.
#pragma once

#include "runtime/data/Table.h"
#include "runtime/plan/Plan.h"

namespace mtrun {

// Changes the number of positions of a field's samples to the length of entry `index` of `program`: pads shorter
// samples with zeros and removes trailing zeros of longer samples. Fields without a sequence axis are not changed.
// MT_INVALID: a sample is too long.
Status fitLength(const Plan &plan, const char *program, uint32_t index, Field &field);

// Returns the number of positions of a sample up to the last nonzero position. `sample` points to a sample of a field
// of sequences.
uint64_t usedPositions(const Field &field, const uint8_t *sample);

} // namespace mtrun
