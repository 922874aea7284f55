// SPDX-License-Identifier: Apache-2.0
//
// A plan's tensors as mtrun.h describes them. What a description points to lives as long as the plan.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/plan/Plan.h"

#include <string_view>
#include <vector>

namespace mtrun {

mtrun_tensor_info infoOf(const ::mt::plan::SignatureEntry &entry);
mtrun_tensor_info infoOf(const ::mt::plan::Variable &variable);

// The entries of a program, in the order of its tensors; none if the plan has no such program.
std::vector<mtrun_tensor_info> signatureOf(const Plan &plan, std::string_view program);

// All variables, in the plan's order.
std::vector<mtrun_tensor_info> variablesOf(const Plan &plan);

} // namespace mtrun
