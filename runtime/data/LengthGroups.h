// SPDX-License-Identifier: Apache-2.0
//
// Groups samples of similar lengths into batches, from an order that does not depend on lengths.
#pragma once

#include "runtime/data/Dataset.h"

#include <cstdint>
#include <vector>

namespace mtrun {

class LengthGroups {
public:
  // `data`: samples in memory, trained in batches of `batch`. The constructor allocates all memory. Throws
  // std::bad_alloc.
  LengthGroups(const mtrun_dataset &data, int64_t batch);

  // Sorts the samples of every 64 batches of `order` by length, then shuffles these batches by (seed, pass). Samples
  // after the last complete batch keep their order.
  void group(int64_t seed, int64_t pass, const std::vector<int64_t> &order);
  const std::vector<int64_t> &order() const { return order_; }

private:
  void groupPart(int64_t seed, int64_t pass, int64_t begin, int64_t end);

  int64_t batch_;
  std::vector<uint32_t> lengths_; // by sample, in positions
  std::vector<int64_t> order_, sorted_;
};

} // namespace mtrun
