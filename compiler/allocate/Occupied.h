// SPDX-License-Identifier: Apache-2.0
//
// The offsets that are taken in each phase while buffers are packed.
#pragma once

#include "compiler/allocate/LiveBuffer.h"

#include <cstddef>
#include <span>
#include <vector>

namespace mtc {

// A list of what has been placed: every question reads it all. The quickest for few buffers.
class OccupiedList {
public:
  explicit OccupiedList(std::span<const LiveBuffer>) {}
  // The offset of the tightest gap that holds the buffer between those that are alive with it; above all of them if
  // none does.
  int64_t tightestGap(const LiveBuffer &buffer) const;
  void place(const LiveBuffer &buffer, int64_t begin);

private:
  struct Placed {
    int64_t begin, end;  // offsets
    int64_t first, last; // phases
  };
  std::vector<Placed> placed; // sorted by offset
};

// The same answers from a segment tree over the phases. A node keeps the offsets that are taken as ranges that do not
// touch: buffers side by side are one range. What a network keeps from its forward pass lies side by side, so there are
// few ranges, and a question does not read the buffers of all layers.
class OccupiedTree {
public:
  explicit OccupiedTree(std::span<const LiveBuffer> buffers);
  int64_t tightestGap(const LiveBuffer &buffer) const;
  void place(const LiveBuffer &buffer, int64_t begin);

private:
  struct Range {
    int64_t begin, end;
  };
  using Ranges = std::vector<Range>;
  struct Node {
    Ranges whole, any; // taken in all phases of the node; in one of them at least
  };
  static void add(Ranges &ranges, Range range);
  void place(size_t node, size_t low, size_t high, size_t first, size_t last, Range range);
  void collect(size_t node, size_t low, size_t high, size_t first, size_t last, Ranges &found) const;
  size_t rankOf(int64_t phase) const;

  std::vector<int64_t> phases; // in which buffers begin or end, sorted: the leaves
  std::vector<Node> nodes;     // the children of node n are 2 n + 1 and 2 n + 2
};

} // namespace mtc
