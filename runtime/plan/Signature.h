// SPDX-License-Identifier: Apache-2.0
//
// Descriptions of a plan's tensors, as mtrun.h defines them. Pointers in a description are valid as long as the plan.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/plan/Plan.h"

#include <string_view>
#include <vector>

namespace mtrun {

mtrun_tensor_info infoOf(const ::mt::plan::SignatureEntry &entry);
mtrun_tensor_info infoOf(const ::mt::plan::Variable &variable);

// Returns the entries of a program's signature in order; empty if the plan has no such program.
std::vector<mtrun_tensor_info> signatureOf(const Plan &plan, std::string_view program);

// Returns all variables in the plan's order.
std::vector<mtrun_tensor_info> variablesOf(const Plan &plan);

} // namespace mtrun
