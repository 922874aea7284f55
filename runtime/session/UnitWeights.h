// SPDX-License-Identifier: Apache-2.0
//
// Sample weights of 1 for a whole batch, which a step reads if the caller leaves the weights out.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mtrun {

class UnitWeights {
public:
  // Returns an upper bound of the bytes that make() allocates.
  static uint64_t bytes(const Plan &plan);
  void make(const Plan &plan);
  // Returns an array of the value 1, as long as the plan's largest optional tensor of the type.
  const void *of(mt::plan::DType type) const { return lists_[static_cast<size_t>(type)].data(); }

private:
  std::vector<std::byte> lists_[8]; // by type
};

} // namespace mtrun
