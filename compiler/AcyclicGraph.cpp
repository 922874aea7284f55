// SPDX-License-Identifier: Apache-2.0
#include "compiler/AcyclicGraph.h"

#include "llvm/ADT/SmallVectorExtras.h"

#include <algorithm>

namespace mtc {

void AcyclicGraph::connect(unsigned before, unsigned after) {
  if (before == after)
    return;
  nodes[before].after.insert(after);
  nodes[after].before.insert(before);
}

void AcyclicGraph::disconnect(unsigned node) {
  for (unsigned before : std::exchange(nodes[node].before, {}))
    nodes[before].after.erase(node);
  for (unsigned after : std::exchange(nodes[node].after, {}))
    nodes[after].before.erase(node);
}

static constexpr int64_t step = int64_t(1) << 32; // distance between new positions

bool AcyclicGraph::sort() {
  std::vector<unsigned> waiting(nodes.size()), order;
  for (unsigned node = 0; node < nodes.size(); ++node)
    if ((waiting[node] = nodes[node].before.size()) == 0)
      order.push_back(node);
  for (size_t i = 0; i < order.size(); ++i)
    for (unsigned next : nodes[order[i]].after)
      if (--waiting[next] == 0)
        order.push_back(next);
  if (order.size() != nodes.size())
    return false;
  insert(none, order, none);
  return true;
}

void AcyclicGraph::link(unsigned previous, unsigned next) {
  if (previous != none)
    nodes[previous].next = next;
  if (next != none)
    nodes[next].previous = previous;
}

void AcyclicGraph::remove(unsigned node) { link(nodes[node].previous, nodes[node].next); }

// Spreads the positions of as few nodes after `first` as needed, so that `room` numbers are free after each.
void AcyclicGraph::makeRoom(unsigned first, int64_t room) {
  int64_t count = 1, position = nodes[first].position;
  unsigned end = nodes[first].next;
  for (; end != none && nodes[end].position - position <= count * room; end = nodes[end].next)
    ++count;
  int64_t distance = end == none ? room : (nodes[end].position - position) / count;
  for (unsigned node = nodes[first].next; node != end; node = nodes[node].next)
    nodes[node].position = position += distance;
}

// Inserts nodes between two adjacent nodes of the order; either may be `none`.
void AcyclicGraph::insert(unsigned previous, llvm::ArrayRef<unsigned> inserted, unsigned next) {
  auto parts = static_cast<int64_t>(inserted.size()) + 1;
  if (previous != none && next != none && nodes[next].position - nodes[previous].position < parts)
    makeRoom(previous, parts * (int64_t(1) << 16));
  int64_t end = next != none ? nodes[next].position : previous != none ? nodes[previous].position + parts * step : 0;
  int64_t number = previous != none ? nodes[previous].position : end - parts * step;
  int64_t distance = (end - number) / parts;
  for (unsigned node : inserted) {
    nodes[node].position = number += distance;
    link(previous, node);
    previous = node;
  }
  link(previous, next);
}

unsigned AcyclicGraph::addAfter(unsigned node) {
  unsigned added = nodes.size();
  nodes.emplace_back();
  insert(node, added, nodes[node].next);
  return added;
}

AcyclicGraph::Walk AcyclicGraph::walk(unsigned first, unsigned last) const {
  struct Side {
    Edges Node::*edges;
    llvm::SmallVector<unsigned> found;
    uint64_t mark;
    size_t next = 0, steps = 0;
  };
  Side sides[2] = {{&Node::after, {first}, ++searches}, {&Node::before, {last}, ++searches}};
  nodes[first].seen = sides[0].mark;
  nodes[last].seen = sides[1].mark;
  auto cost = [&](const Side &side) { return side.steps + (nodes[side.found[side.next]].*side.edges).size(); };
  auto ended = [](const Side &side) { return side.next == side.found.size(); };
  while (!ended(sides[0]) && !ended(sides[1])) {
    bool backward = cost(sides[1]) < cost(sides[0]);
    Side &side = sides[backward];
    unsigned node = side.found[side.next], goal = backward ? first : last;
    side.steps = cost(side) + 1;
    followed += (nodes[node].*side.edges).size();
    ++side.next;
    for (unsigned other : nodes[node].*side.edges) {
      bool direct = side.next == 1 && other == goal;
      bool between = nodes[first].position <= nodes[other].position && nodes[other].position <= nodes[last].position;
      if (direct || !between || nodes[other].seen == side.mark)
        continue;
      if (nodes[other].seen == sides[!backward].mark)
        return {true, false, {}};
      nodes[other].seen = side.mark;
      side.found.push_back(other);
    }
  }
  bool forward = ended(sides[0]);
  llvm::SmallVector<unsigned> &found = sides[!forward].found;
  found.erase(found.begin());
  return {false, forward, std::move(found)};
}

bool AcyclicGraph::haveIndirectPath(unsigned a, unsigned b) const {
  if (nodes[b].position < nodes[a].position)
    std::swap(a, b);
  return walk(a, b).connected;
}

llvm::SmallVector<bool> AcyclicGraph::haveIndirectPaths(unsigned node, llvm::ArrayRef<unsigned> others) const {
  int64_t low = nodes[node].position, high = low;
  for (unsigned other : others) {
    low = std::min(low, nodes[other].position);
    high = std::max(high, nodes[other].position);
  }
  uint64_t found = ++searches;
  for (Edges Node::*edges : {&Node::after, &Node::before}) {
    uint64_t mark = ++searches;
    llvm::SmallVector<unsigned> waiting((nodes[node].*edges).begin(), (nodes[node].*edges).end());
    for (unsigned next : waiting)
      nodes[next].seen = mark;
    while (!waiting.empty())
      for (unsigned next : nodes[waiting.pop_back_val()].*edges) {
        if (nodes[next].position < low || nodes[next].position > high)
          continue;
        nodes[next].far = found;
        if (std::exchange(nodes[next].seen, mark) != mark)
          waiting.push_back(next);
      }
  }
  return llvm::map_to_vector(others, [&](unsigned other) { return nodes[other].far == found; });
}

bool AcyclicGraph::havePath(unsigned from, unsigned to) const {
  if (from == to || nodes[from].after.contains(to))
    return true;
  return nodes[from].position < nodes[to].position && walk(from, to).connected;
}

// Makes two nodes adjacent in the order: moves the nodes that depend on `first` after `last`, or the nodes on which
// `last` depends before `first`. `middle` replaces both nodes.
void AcyclicGraph::makeAdjacent(unsigned first, unsigned last, llvm::ArrayRef<unsigned> middle) {
  Walk moved = walk(first, last);
  assert(!moved.connected && "expected no path through a third node");
  llvm::sort(moved.found, [&](unsigned a, unsigned b) { return nodes[a].position < nodes[b].position; });
  llvm::for_each(moved.found, [&](unsigned node) { remove(node); });
  moved.found.insert(moved.forward ? moved.found.begin() : moved.found.end(), middle.begin(), middle.end());
  remove(moved.forward ? first : last);
  unsigned stays = moved.forward ? last : first, previous = nodes[stays].previous, next = nodes[stays].next;
  remove(stays);
  insert(previous, moved.found, next);
}

void AcyclicGraph::addEdge(unsigned before, unsigned after) {
  if (nodes[after].position < nodes[before].position)
    makeAdjacent(after, before, {before, after});
  connect(before, after);
}

void AcyclicGraph::merge(unsigned into, unsigned from) {
  unsigned first = into, last = from;
  if (nodes[last].position < nodes[first].position)
    std::swap(first, last);
  makeAdjacent(first, last, into);
  for (unsigned before : nodes[from].before)
    connect(before, into);
  for (unsigned after : nodes[from].after)
    connect(into, after);
  disconnect(from);
}

} // namespace mtc
