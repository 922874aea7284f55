// SPDX-License-Identifier: Apache-2.0
//
// Batches of samples of similar lengths, out of an order that knows no lengths.
#pragma once

#include "runtime/data/Dataset.h"

#include <cstdint>
#include <vector>

namespace mtrun {

class LengthGroups {
public:
  // Of a training in batches of `batch` samples, which are in memory. After it nothing is allocated. Throws
  // std::bad_alloc.
  LengthGroups(const mtrun_dataset &data, int64_t batch);

  // Sorts the samples of each 64 batches of `order` by their lengths, and then draws the order of these batches, by
  // (seed, pass). The samples behind the last whole batch stay as they are.
  void group(int64_t seed, int64_t pass, const std::vector<int64_t> &order);
  const std::vector<int64_t> &order() const { return order_; }

private:
  void groupPart(int64_t seed, int64_t pass, int64_t begin, int64_t end);

  int64_t batch_;
  std::vector<uint32_t> lengths_; // of each sample, in positions
  std::vector<int64_t> order_, sorted_;
};

} // namespace mtrun
