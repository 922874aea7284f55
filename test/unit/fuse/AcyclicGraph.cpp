// SPDX-License-Identifier: Apache-2.0
#include "compiler/AcyclicGraph.h"

#include <gtest/gtest.h>
#include <random>
#include <set>

namespace mtc {
namespace {

// The same graph, searched as a whole for each question.
class Reference {
public:
  explicit Reference(unsigned count) : after(count) {}
  void connect(unsigned before, unsigned to) {
    if (before != to)
      after[before].insert(to);
  }
  bool leadsIndirectly(unsigned from, unsigned to) const {
    std::set<unsigned> seen;
    std::vector<unsigned> ahead;
    for (unsigned next : after[from])
      if (next != to)
        ahead.push_back(next);
    while (!ahead.empty()) {
      unsigned node = ahead.back();
      ahead.pop_back();
      if (node == to)
        return true;
      if (seen.insert(node).second)
        ahead.insert(ahead.end(), after[node].begin(), after[node].end());
    }
    return false;
  }
  void merge(unsigned into, unsigned from) {
    std::set<unsigned> both = std::exchange(after[from], {});
    for (unsigned to : both)
      connect(into, to);
    for (unsigned before = 0; before < after.size(); ++before)
      if (after[before].erase(from))
        connect(before, into);
  }
  std::vector<std::set<unsigned>> after;
};

// Random edges, merges, and nodes that are added behind others and take an edge of theirs.
void compare(uint32_t seed, unsigned count, unsigned width) {
  std::mt19937 random(seed);
  AcyclicGraph graph(count);
  Reference reference(count);
  for (unsigned node = 1; node < count; ++node)
    for (unsigned edge = random() % 3; edge-- > 0;) {
      unsigned before = node - 1 - random() % std::min(node, width);
      graph.connect(before, node);
      reference.connect(before, node);
    }
  graph.sort();
  std::vector<bool> gone(count);
  for (int round = 0; round < 400; ++round) {
    unsigned a = random() % gone.size(), b = random() % gone.size();
    if (a == b || gone[a] || gone[b])
      continue;
    bool indirect = reference.leadsIndirectly(a, b) || reference.leadsIndirectly(b, a);
    ASSERT_EQ(graph.haveIndirectPath(a, b), indirect) << "seed " << seed << ", round " << round;
    ASSERT_EQ(graph.haveIndirectPaths(a, {b, a})[0], indirect) << "seed " << seed << ", round " << round;
    bool back = reference.leadsIndirectly(b, a) || reference.after[b].count(a);
    ASSERT_EQ(graph.havePath(b, a), back) << "seed " << seed << ", round " << round;
    if (round % 5 == 0 && !back) {
      graph.addEdge(a, b);
      reference.connect(a, b);
      continue;
    }
    if (round % 7 == 0) {
      unsigned added = graph.addAfter(a);
      gone.push_back(false);
      reference.after.emplace_back();
      graph.connect(a, added);
      reference.connect(a, added);
      if (!reference.after[a].empty()) {
        unsigned next = *reference.after[a].begin();
        graph.connect(added, next);
        reference.connect(added, next);
      }
    } else if (!indirect) {
      graph.merge(a, b);
      reference.merge(a, b);
      gone[b] = true;
    }
  }
  for (unsigned node = 0; node < gone.size(); ++node) {
    const AcyclicGraph::Edges &after = graph.successors(node);
    EXPECT_EQ(std::set<unsigned>(after.begin(), after.end()), reference.after[node]);
  }
}

TEST(AcyclicGraph, AnswersAsASearchOfTheWholeGraph) {
  for (uint32_t seed = 0; seed < 100; ++seed)
    compare(seed, 40 + seed, seed % 2 ? 5 : 1000);
}

TEST(AcyclicGraph, FindsACycle) {
  AcyclicGraph graph(3);
  graph.connect(0, 1);
  graph.connect(1, 2);
  EXPECT_TRUE(graph.sort());
  EXPECT_TRUE(graph.havePath(0, 2));
  EXPECT_TRUE(graph.havePath(1, 1));
  EXPECT_FALSE(graph.havePath(2, 0));
  AcyclicGraph cycle(2);
  cycle.connect(0, 1);
  cycle.connect(1, 0);
  EXPECT_FALSE(cycle.sort());
}

// A merge takes time in what lies between two nodes, not in the size of the graph: a million nodes take a second or so,
// and would take hours.
TEST(AcyclicGraph, MergesNeighboursOfALongChain) {
  constexpr unsigned count = 1'000'000;
  AcyclicGraph graph(count);
  for (unsigned node = 1; node < count; ++node)
    graph.connect(node - 1, node);
  graph.sort();
  for (unsigned node = 0; node + 1 < count; node += 2) {
    ASSERT_FALSE(graph.haveIndirectPath(node, node + 1));
    graph.merge(node, node + 1);
  }
  EXPECT_TRUE(graph.haveIndirectPath(0, 4));
  EXPECT_FALSE(graph.haveIndirectPath(0, 2));
}

// Numbers between two places run out now and then.
TEST(AcyclicGraph, AddsManyNodesInOnePlace) {
  AcyclicGraph graph(2);
  graph.connect(0, 1);
  graph.sort();
  for (int round = 0; round < 1000; ++round) {
    unsigned added = graph.addAfter(0);
    graph.connect(0, added);
    graph.connect(added, 1);
  }
  EXPECT_TRUE(graph.haveIndirectPath(0, 1));
  EXPECT_FALSE(graph.haveIndirectPath(0, 500));
  EXPECT_FALSE(graph.haveIndirectPath(500, 501));
}

} // namespace
} // namespace mtc
