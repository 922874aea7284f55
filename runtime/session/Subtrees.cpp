// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Subtrees.h"

#include <algorithm>

namespace mtrun {

std::vector<int> splitShards(int allShards, int devices) {
  std::vector<int> shards = {allShards};
  while (static_cast<int>(shards.size()) < devices) {
    auto largest = std::max_element(shards.begin(), shards.end()); // the first of equals
    *largest /= 2;
    shards.insert(largest, *largest);
  }
  return shards;
}

} // namespace mtrun
