// SPDX-License-Identifier: Apache-2.0
//
// A directed acyclic graph in which nodes are merged and edges are added. The graph maintains a topological order, so
// that a path between two nodes contains only nodes between them in this order, and most queries for a path end after a
// few steps, however large the graph is. A query searches from both ends in alternation, until the searches meet or one
// of them ends. A merge moves the nodes that the ended search has found.
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

  // The graph has nodes 0 to `count` - 1 and no edges. Call `connect` for all edges, then `sort`, which returns false
  // if there is a cycle.
  explicit AcyclicGraph(unsigned count = 0) : nodes(count) {}
  bool sort();

  const Edges &predecessors(unsigned node) const { return nodes[node].before; }
  const Edges &successors(unsigned node) const { return nodes[node].after; }
  // Ignores an edge from a node to itself.
  void connect(unsigned before, unsigned after);
  void disconnect(unsigned node);
  // Adds an edge after `sort`, and moves nodes to keep the order topological. There must be no path from `after` to
  // `before`.
  void addEdge(unsigned before, unsigned after);
  // Adds a node without edges right after `node` in the order, and returns its number.
  unsigned addAfter(unsigned node);
  // Moves the edges of `from` to `into`. There must be no path between the two nodes through a third node.
  void merge(unsigned into, unsigned from);
  // Whether a path between the two nodes, in either direction, passes through a third node.
  bool haveIndirectPath(unsigned a, unsigned b) const;
  // The same for one node and each of several others, in the order of `others`, by one search.
  llvm::SmallVector<bool> haveIndirectPaths(unsigned node, llvm::ArrayRef<unsigned> others) const;
  // The edges that all searches so far have followed.
  uint64_t effort() const { return followed; }
  // Whether there is a path from one node to another; a single edge, or a node itself, is a path.
  bool havePath(unsigned from, unsigned to) const;

private:
  static constexpr unsigned none = ~0u;
  struct Node {
    Edges before, after;
    int64_t position = 0; // position in the order; positions have gaps
    unsigned previous = none, next = none;
    mutable uint64_t seen = 0; // number of the last search that visited the node
    mutable uint64_t far = 0;  // number of the last haveIndirectPaths that found an indirect path to the node
  };
  struct Walk {
    bool connected = false, forward = false; // forward: the search from the first node has ended
    llvm::SmallVector<unsigned> found;       // nodes that the ended search visited, without its first node
  };
  Walk walk(unsigned first, unsigned last) const;
  void makeAdjacent(unsigned first, unsigned last, llvm::ArrayRef<unsigned> middle);
  void link(unsigned previous, unsigned next);
  void remove(unsigned node);
  void insert(unsigned previous, llvm::ArrayRef<unsigned> inserted, unsigned next);
  void makeRoom(unsigned first, int64_t room);

  std::vector<Node> nodes;
  mutable uint64_t searches = 0, followed = 0;
};

} // namespace mtc
