// SPDX-License-Identifier: Apache-2.0
//
// Offsets that are occupied in each phase while buffers are packed.
#pragma once

#include "compiler/allocate/LiveBuffer.h"

#include <cstddef>
#include <span>
#include <vector>

namespace mtc {

// A list of placed buffers, which every query scans. It is the fastest form for few buffers.
class OccupiedList {
public:
  explicit OccupiedList(std::span<const LiveBuffer>) {}
  // The offset of the tightest gap that fits the buffer, between buffers that are live at the same time; if no gap
  // fits, the end of the highest of these buffers.
  int64_t tightestGap(const LiveBuffer &buffer) const;
  void place(const LiveBuffer &buffer, int64_t begin);

private:
  struct Placed {
    int64_t begin, end;  // offsets
    int64_t first, last; // phases
  };
  std::vector<Placed> placed; // sorted by offset
};

// Answers the same queries from a segment tree over the phases. A node stores occupied offsets as ranges that do not
// touch, so adjacent buffers are one range. A network keeps the activations of its forward pass in adjacent buffers, so
// there are few ranges, and a query does not scan the buffers of all layers.
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
    Ranges whole, any; // occupied in all phases of the node; in at least one of them
  };
  static void add(Ranges &ranges, Range range);
  void place(size_t node, size_t low, size_t high, size_t first, size_t last, Range range);
  void collect(size_t node, size_t low, size_t high, size_t first, size_t last, Ranges &found) const;
  size_t rankOf(int64_t phase) const;

  std::vector<int64_t> phases; // phases in which buffers begin or end, sorted: the leaves of the tree
  std::vector<Node> nodes;     // the children of node n are 2 n + 1 and 2 n + 2
};

} // namespace mtc
