// SPDX-License-Identifier: Apache-2.0
//
// Which shards each device hosts: whole subtrees of the reduction tree. The compiler reports what the runtime does.
#pragma once

#include <vector>

namespace mtrun {

// Shards of each of `devices` devices, in shard order: from one subtree of all `allShards` (a power of two), the
// largest is split, the first of equals, until there are enough. 1 <= devices <= allShards.
std::vector<int> splitShards(int allShards, int devices);

} // namespace mtrun
