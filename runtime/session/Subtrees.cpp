// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Subtrees.h"

#include <algorithm>

namespace mtrun {

std::vector<int> splitLeaves(int replicas, int devices) {
  std::vector<int> leaves = {replicas};
  while (static_cast<int>(leaves.size()) < devices) {
    auto largest = std::max_element(leaves.begin(), leaves.end()); // the first of equals
    *largest /= 2;
    leaves.insert(largest, *largest);
  }
  return leaves;
}

} // namespace mtrun
