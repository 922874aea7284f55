// SPDX-License-Identifier: Apache-2.0
//
// Whether a plan's tables mean something: docs/plan-format.md section 4.
#pragma once

#include "runtime/abi/plan_file.h"
#include "runtime/support/status.h"

namespace mtrun {

// Everything that section 4 of docs/plan-format.md asks of well-formed tables. MT_CORRUPT names the field and both
// numbers.
Status verifyPlan(const mt::plan::Plan &plan);

} // namespace mtrun
