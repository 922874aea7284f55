// SPDX-License-Identifier: Apache-2.0
//
// Which replicas each device hosts: whole subtrees of the replica tree.
#pragma once

#include <vector>

namespace mtrun {

// Leaves of each of `devices` devices, in leaf order: from one subtree of all `replicas` (a power of two), the largest
// is split, the first of equals, until there are enough. 1 <= devices <= replicas.
std::vector<int> splitLeaves(int replicas, int devices);

} // namespace mtrun
