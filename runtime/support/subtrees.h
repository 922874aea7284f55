// SPDX-License-Identifier: Apache-2.0
//
// Assigns shards to devices: each device has a whole subtree of the reduction tree. The compiler uses the same function
// for its reports.
#pragma once

#include <cstdint>
#include <vector>

namespace mtrun {

// Returns the number of shards of each device, in shard order. Starts from one subtree with all `allShards` (a power of
// two) and splits the largest subtree (the first if several are equal) until there are `devices` subtrees. 1 <= devices
// <= allShards.
std::vector<int> splitShards(int allShards, int devices);

// The same for devices of different speeds: each subtree with several devices is split where the weights of the two
// sides differ least. Equal weights give the result of the function above. There are 1 to `allShards` weights, each at
// least 1 and at most 2^31.
std::vector<int> splitShards(int allShards, const std::vector<int64_t> &weights);

// The same for devices on several hosts: each host has a whole subtree, and divides it among its devices. Empty: some
// host would have more devices than shards.
std::vector<int> splitShardsOnHosts(int allShards, const std::vector<int> &hosts);

} // namespace mtrun
