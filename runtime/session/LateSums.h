// SPDX-License-Identifier: Apache-2.0
//
// Which sums of an all-reduce need no pass of their own: those that a single shared-out Map launch reads. Where devices
// share memory each worker adds the roots of a tile just before it runs the tile.
#pragma once

#include "runtime/abi/plan_file.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace mtrun {

// `count` elements from `first` on of all-reduce `allReduce` (its number in the program) are read by segment `segment`
// of step `step` as `buffer`, and by nothing else.
struct LateSum {
  uint32_t allReduce, step, segment, buffer;
  int64_t first, count;
};

// `elementsPerTile`: of the plan's sum kernel; launches with tiles of another size add nothing late. The plan is
// verified.
std::vector<LateSum> lateSums(const mt::plan::Plan &plan, const mt::plan::Program &program, int64_t elementsPerTile);

// What is left of an all-reduce of `elements`: first element and end of each range, in order.
std::vector<std::pair<int64_t, int64_t>> earlyRanges(const std::vector<LateSum> &late, uint32_t allReduce,
                                                     int64_t elements);

} // namespace mtrun
