// SPDX-License-Identifier: Apache-2.0
//
// Assigns shards to devices: each device has a whole subtree of the reduction tree. The compiler uses the same function
// for its reports.
#pragma once

#include <vector>

namespace mtrun {

// Returns the number of shards of each device, in shard order. Starts from one subtree with all `allShards` (a power of
// two) and splits the largest subtree (the first if several are equal) until there are `devices` subtrees. 1 <= devices
// <= allShards.
std::vector<int> splitShards(int allShards, int devices);

} // namespace mtrun
