// SPDX-License-Identifier: Apache-2.0
//
// What a step reads in place of sample weights that its caller leaves out: ones, for a batch.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mtrun {

class UnitWeights {
public:
  // An upper bound of what make takes.
  static uint64_t bytes(const Plan &plan);
  void make(const Plan &plan);
  // As many as the plan's largest optional tensor of the type has.
  const void *of(mt::plan::DType type) const { return lists_[static_cast<size_t>(type)].data(); }

private:
  std::vector<std::byte> lists_[8]; // a type each
};

} // namespace mtrun
