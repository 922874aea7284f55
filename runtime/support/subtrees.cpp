// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/subtrees.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>

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

// Appends the shards of devices [begin, end), which share a subtree of `shards`.
static void splitSubtree(const std::vector<int64_t> &weights, size_t begin, size_t end, int shards,
                         std::vector<int> &result) {
  if (end - begin == 1) {
    result.push_back(shards);
    return;
  }
  auto half = static_cast<size_t>(shards / 2);
  int64_t all = std::accumulate(weights.begin() + static_cast<std::ptrdiff_t>(begin),
                                weights.begin() + static_cast<std::ptrdiff_t>(end), int64_t(0));
  int64_t left = 0, least = INT64_MAX;
  size_t middle = begin;
  for (size_t at = begin + 1; at < end; ++at) {
    left += weights[at - 1];
    int64_t difference = std::abs(2 * left - all);
    if (at - begin > half || end - at > half || difference >= least)
      continue;
    least = difference;
    middle = at;
  }
  splitSubtree(weights, begin, middle, shards / 2, result);
  splitSubtree(weights, middle, end, shards / 2, result);
}

std::vector<int> splitShards(int allShards, const std::vector<int64_t> &weights) {
  if (std::all_of(weights.begin(), weights.end(), [&](int64_t weight) { return weight == weights[0]; }))
    return splitShards(allShards, static_cast<int>(weights.size()));
  std::vector<int> shards;
  splitSubtree(weights, 0, weights.size(), allShards, shards);
  return shards;
}

} // namespace mtrun
