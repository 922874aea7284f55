// SPDX-License-Identifier: Apache-2.0
//
// The programs of a plan with several sequence lengths.
#pragma once

#include "runtime/abi/plan_file.h"

#include <cstdint>
#include <string_view>

namespace mtrun {

// Returns the index in Plan.programs of "train_step", "eval_step" or "predict" for a length; -1 if there is none.
int32_t programAt(const mt::plan::Length &length, std::string_view program);

// Returns true if the axis after the batch axis is a sequence axis, for an entry of `program` at the largest length.
bool hasLength(const mt::plan::Plan &plan, std::string_view program, uint32_t entry);

// Returns true if the length of a sample is read from this entry.
bool saysLength(const mt::plan::Plan &plan, const mt::plan::SignatureEntry &entry);

} // namespace mtrun
