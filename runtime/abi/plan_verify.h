// SPDX-License-Identifier: Apache-2.0
//
// Verifies the meaning of a plan's tables: docs/plan-format.md section 4.
#pragma once

#include "runtime/abi/plan_file.h"
#include "runtime/support/status.h"

namespace mtrun {

// Verifies all rules of section 4 of docs/plan-format.md for well-formed tables. MT_CORRUPT names the field, the
// expected and the found value.
Status verifyPlan(const mt::plan::Plan &plan);

} // namespace mtrun
