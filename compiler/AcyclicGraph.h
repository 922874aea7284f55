// SPDX-License-Identifier: Apache-2.0
//
// A directed acyclic graph whose nodes are merged, or get edges. It keeps the nodes in an order in which every edge
// goes forward: a path between two nodes has only nodes between their places, so that most questions for one are
// answered after a few steps, however large the graph is. Two-way searches: from the former node forward and from the
// latter backward, in turns, until they meet or one side ends. A merge moves what the side that ended has found.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <vector>

namespace mtc {

class AcyclicGraph {
public:
  using Edges = llvm::SmallDenseSet<unsigned, 4>;

  // Nodes 0 to `count` - 1, without edges. After `connect` for all of them `sort` must follow. It returns false where
  // there is a cycle.
  explicit AcyclicGraph(unsigned count = 0) : nodes(count) {}
  bool sort();

  const Edges &predecessors(unsigned node) const { return nodes[node].before; }
  const Edges &successors(unsigned node) const { return nodes[node].after; }
  // An edge from a node to itself is none.
  void connect(unsigned before, unsigned after);
  void disconnect(unsigned node);
  // An edge after `sort`, which moves the nodes that are in another order. There is no path from `after` to `before`.
  void addEdge(unsigned before, unsigned after);
  // A node without edges, with its place in the order just behind another one's. Returns its number.
  unsigned addBehind(unsigned node);
  // Edges to and from `from` become those of `into`. There is no path between them through a third node.
  void merge(unsigned into, unsigned from);
  // Is there a path between two nodes, in either direction, that passes through a third one?
  bool haveIndirectPath(unsigned a, unsigned b) const;
  // Is there a path? An edge is one, and so is a node alone.
  bool havePath(unsigned from, unsigned to) const;

private:
  static constexpr unsigned none = ~0u;
  struct Node {
    Edges before, after;
    int64_t place = 0; // numbers with room between them
    unsigned previous = none, next = none;
    mutable uint64_t seen = 0; // by which search
  };
  struct Walk {
    bool meet = false, forward = false; // forward: what lies behind the first node has ended
    llvm::SmallVector<unsigned> found;  // on the side that ended, without the node that it began with
  };
  Walk walk(unsigned first, unsigned last) const;
  void bringTogether(unsigned first, unsigned last, llvm::ArrayRef<unsigned> middle);
  void link(unsigned previous, unsigned next);
  void remove(unsigned node);
  void insert(unsigned previous, llvm::ArrayRef<unsigned> inserted, unsigned next);
  void makeRoom(unsigned behind, int64_t room);

  std::vector<Node> nodes;
  mutable uint64_t searches = 0;
};

} // namespace mtc
