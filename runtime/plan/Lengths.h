// SPDX-License-Identifier: Apache-2.0
//
// The programs of a plan for sequences of several lengths.
#pragma once

#include "runtime/abi/plan_file.h"

#include <cstdint>
#include <string_view>

namespace mtrun {

// Index into Plan.programs of "train_step", "eval_step" or "predict" at one length; -1: there is none.
int32_t programAt(const mt::plan::Length &length, std::string_view program);

// Whether the axis behind the batch of an entry of `program`, which is that of the largest length, is a sequence's.
bool hasLength(const mt::plan::Plan &plan, std::string_view program, uint32_t entry);

// Whether such an entry says how long a sample is.
bool saysLength(const mt::plan::Plan &plan, const mt::plan::SignatureEntry &entry);

} // namespace mtrun
