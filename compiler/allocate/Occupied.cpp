// SPDX-License-Identifier: Apache-2.0
#include "compiler/allocate/Occupied.h"

#include <algorithm>
#include <limits>

namespace mtc {

namespace {
// Finds the tightest gap between ranges, which are passed by increasing offset.
struct TightestGap {
  int64_t bytes;
  int64_t best = -1, bestSlack = std::numeric_limits<int64_t>::max(), end = 0;

  void pass(int64_t begin, int64_t rangeEnd) {
    if (int64_t slack = begin - end - bytes; slack >= 0 && slack < bestSlack) {
      best = end;
      bestSlack = slack;
    }
    end = std::max(end, rangeEnd);
  }
  int64_t offset() const { return best >= 0 ? best : end; }
};
} // namespace

int64_t OccupiedList::tightestGap(const LiveBuffer &buffer) const {
  TightestGap gap{buffer.bytes};
  for (const Placed &other : placed)
    if (other.first <= buffer.last && other.last >= buffer.first)
      gap.pass(other.begin, other.end);
  return gap.offset();
}

void OccupiedList::place(const LiveBuffer &buffer, int64_t begin) {
  placed.insert(std::upper_bound(placed.begin(), placed.end(), begin,
                                 [](int64_t offset, const Placed &other) { return offset < other.begin; }),
                {begin, begin + buffer.bytes, buffer.first, buffer.last});
}

OccupiedTree::OccupiedTree(std::span<const LiveBuffer> buffers) {
  for (const LiveBuffer &buffer : buffers)
    phases.insert(phases.end(), {buffer.first, buffer.last});
  std::sort(phases.begin(), phases.end());
  phases.erase(std::unique(phases.begin(), phases.end()), phases.end());
  size_t leaves = 1;
  while (leaves < phases.size())
    leaves *= 2;
  nodes.resize(2 * leaves);
}

size_t OccupiedTree::rankOf(int64_t phase) const {
  return static_cast<size_t>(std::lower_bound(phases.begin(), phases.end(), phase) - phases.begin());
}

// Joins the range with the ranges that it overlaps or touches.
void OccupiedTree::add(Ranges &ranges, Range range) {
  auto from = std::lower_bound(ranges.begin(), ranges.end(), range.begin,
                               [](const Range &other, int64_t begin) { return other.end < begin; });
  auto to = from;
  for (; to != ranges.end() && to->begin <= range.end; ++to)
    range = {std::min(range.begin, to->begin), std::max(range.end, to->end)};
  if (from == to) {
    ranges.insert(from, range);
  } else {
    *from = range;
    ranges.erase(from + 1, to);
  }
}

void OccupiedTree::place(size_t node, size_t low, size_t high, size_t first, size_t last, Range range) {
  if (high < first || last < low)
    return;
  add(nodes[node].any, range);
  if (first <= low && high <= last)
    return add(nodes[node].whole, range);
  size_t middle = (low + high) / 2;
  place(2 * node + 1, low, middle, first, last, range);
  place(2 * node + 2, middle + 1, high, first, last, range);
}

void OccupiedTree::place(const LiveBuffer &buffer, int64_t begin) {
  place(0, 0, nodes.size() / 2 - 1, rankOf(buffer.first), rankOf(buffer.last), {begin, begin + buffer.bytes});
}

void OccupiedTree::collect(size_t node, size_t low, size_t high, size_t first, size_t last, Ranges &found) const {
  if (high < first || last < low || nodes[node].any.empty())
    return;
  bool within = first <= low && high <= last;
  const Ranges &ranges = within ? nodes[node].any : nodes[node].whole;
  found.insert(found.end(), ranges.begin(), ranges.end());
  if (within)
    return;
  size_t middle = (low + high) / 2;
  collect(2 * node + 1, low, middle, first, last, found);
  collect(2 * node + 2, middle + 1, high, first, last, found);
}

int64_t OccupiedTree::tightestGap(const LiveBuffer &buffer) const {
  Ranges found;
  collect(0, 0, nodes.size() / 2 - 1, rankOf(buffer.first), rankOf(buffer.last), found);
  std::sort(found.begin(), found.end(), [](const Range &a, const Range &b) { return a.begin < b.begin; });
  TightestGap gap{buffer.bytes};
  for (const Range &range : found)
    gap.pass(range.begin, range.end);
  return gap.offset();
}

} // namespace mtc
