// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/subtrees.h"

#include <algorithm>
#include <bit>

namespace mtrun {

std::vector<int> splitShards(int allShards, int devices) {
  if (std::has_single_bit(static_cast<unsigned>(devices))) // fast path, because there may be thousands of devices
    return std::vector<int>(devices, allShards / devices);
  std::vector<int> shards = {allShards};
  while (static_cast<int>(shards.size()) < devices) {
    auto largest = std::max_element(shards.begin(), shards.end()); // the first if several are equal
    *largest /= 2;
    shards.insert(largest, *largest);
  }
  return shards;
}

} // namespace mtrun
