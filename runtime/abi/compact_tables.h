// SPDX-License-Identifier: Apache-2.0
//
// The compact form of a plan's tables: arguments of kernels, buffers and steps as columns of numbers, in which what
// repeats with constant differences, such as the steps of a loop over time, takes a few bytes. docs/plan-format.md
// section 1 has the format.
#pragma once

#include "runtime/abi/plan_generated.h"

#include <cstdint>
#include <string>

namespace mtrun {

// Moves the arguments of all kernels and the buffers and steps of all programs to `Plan.compact`. Changes nothing if
// the plan is compact already, or if a reader would refuse the result for its size.
void compactTables(mt::plan::PlanT &plan);

// The inverse. Returns "" if it succeeds, else what is wrong, in one line; the plan is then incomplete. It checks sizes
// before it allocates memory, and takes at most about maxExpandedBytes.
std::string expandTables(mt::plan::PlanT &plan);

// Each argument, buffer, step and segment of the expanded tables counts as `tableBytes`, each number of a list as
// `numberBytes`, and each name as its bytes.
constexpr uint64_t maxExpandedBytes = uint64_t{1} << 29, tableBytes = 512, numberBytes = 24;

} // namespace mtrun
