// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/overlap.h"

#include <algorithm>

namespace mtrun {

static bool overlap(std::span<const Range> left, std::span<const Range> right) {
  return std::ranges::any_of(left, [&](const Range &a) {
    return std::ranges::any_of(right, [&](const Range &b) { return a.begin < b.end && b.begin < a.end; });
  });
}

Overlap::Place Overlap::launch(std::span<const Range> touched, bool isUpdate) {
  int last = links() - 1;
  while (last >= waited_ && !overlap(links_[static_cast<size_t>(last)], touched))
    --last;
  if (last < waited_)
    return {false, -1};
  if (isUpdate) {
    links_.emplace_back(touched.begin(), touched.end());
    return {true, -1};
  }
  waited_ = last + 1;
  return {false, last};
}

} // namespace mtrun
