// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/subtrees.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>
#include <set>
#include <tuple>

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

namespace {

// Divides shards among hosts, so that their numbers follow the devices as far as possible.
class HostSplitter {
public:
  explicit HostSplitter(const std::vector<int> &hosts) : hosts_(hosts) {}

  // Appends the shards of hosts [begin, end), which share a subtree of `shards`; false if some host would get too few.
  bool split(size_t begin, size_t end, int shards, std::vector<int> &result) {
    if (end - begin == 1) {
      result.push_back(shards);
      return hosts_[begin] <= shards;
    }
    if (devices(begin, end) > shards || failed_.contains({begin, end, shards}))
      return false;
    std::vector<size_t> cuts(end - begin - 1);
    std::iota(cuts.begin(), cuts.end(), begin + 1);
    std::ranges::stable_sort(cuts, {}, [&](size_t at) { return std::abs(devices(begin, at) - devices(at, end)); });
    size_t before = result.size();
    for (size_t at : cuts) {
      if (split(begin, at, shards / 2, result) && split(at, end, shards / 2, result))
        return true;
      result.resize(before);
    }
    failed_.insert({begin, end, shards});
    return false;
  }

private:
  int64_t devices(size_t begin, size_t end) const {
    return std::accumulate(hosts_.begin() + static_cast<std::ptrdiff_t>(begin),
                           hosts_.begin() + static_cast<std::ptrdiff_t>(end), int64_t(0));
  }

  const std::vector<int> &hosts_;
  std::set<std::tuple<size_t, size_t, int>> failed_;
};

} // namespace

std::vector<int> splitShardsOnHosts(int allShards, const std::vector<int> &hosts) {
  std::vector<int> ofHosts, shards;
  if (!HostSplitter(hosts).split(0, hosts.size(), allShards, ofHosts))
    return {};
  for (size_t host = 0; host < hosts.size(); ++host)
    for (int share : splitShards(ofHosts[host], hosts[host]))
      shards.push_back(share);
  return shards;
}

} // namespace mtrun
