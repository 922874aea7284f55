// SPDX-License-Identifier: Apache-2.0
//
// Wrong tables of a plan, made from right ones: what an attacker's plan may hold whose hashes fit.
#pragma once

#include "runtime/abi/plan_generated.h"

#include <random>

namespace mtrun::test {

// Changes one to three numbers, names or vectors of the tables, any of them alike. Same seed, same changes.
void mutateTables(mt::plan::PlanT &plan, std::mt19937 &random);

} // namespace mtrun::test
