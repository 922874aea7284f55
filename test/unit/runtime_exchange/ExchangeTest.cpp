// SPDX-License-Identifier: Apache-2.0
//
// Runs the rounds of all processes of an exchange in one thread, and compares every element with the reduction tree.
#include "runtime/device/Exchange.h"
#include "runtime/device/Collectives.h"
#include "runtime/support/subtrees.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>

namespace mtrun {
namespace {

using Vector = std::vector<float>;
constexpr ExchangeKind kinds[] = {ExchangeKind::Gather, ExchangeKind::Doubling, ExchangeKind::Halving,
                                  ExchangeKind::Direct};

bool needsPowerOfTwo(ExchangeKind kind) { return kind == ExchangeKind::Doubling || kind == ExchangeKind::Halving; }

bool isPowerOfTwo(int number) { return std::has_single_bit(static_cast<unsigned>(number)); }

// Numbers of many magnitudes, whose sum depends on the order; and zeros, subnormals and infinities of one sign.
Vector partialOf(int process, int64_t elements) {
  Vector partial(static_cast<size_t>(elements));
  auto state = static_cast<uint32_t>(process + 1) * 2654435761u;
  for (size_t i = 0; i < partial.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    float number = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
    partial[i] = std::ldexp(number, static_cast<int>(state >> 8 & 15) - 8);
    if (i % 61 == 7)
      partial[i] = -0.0f;
    else if (i % 61 == 19)
      partial[i] = number * std::numeric_limits<float>::denorm_min() * 1000;
    else if (i % 61 == 37)
      partial[i] = std::numeric_limits<float>::infinity();
  }
  return partial;
}

std::vector<std::vector<TreeSum>> treeOf(int processes) {
  int shards = static_cast<int>(std::bit_ceil(static_cast<unsigned>(processes)));
  return treeSums(splitShards(shards, processes));
}

Vector treeResult(std::vector<Vector> nodes, const std::vector<TreeSum> &sums) {
  for (const TreeSum &sum : sums)
    for (size_t i = 0; i < nodes[0].size(); ++i)
      nodes[static_cast<size_t>(sum.left)][i] += nodes[static_cast<size_t>(sum.right)][i];
  return nodes[0];
}

// A process of the simulation. Its staging memory ends with a mark, and its result begins as NaN.
struct Simulated {
  std::vector<ExchangeRound> rounds;
  size_t round = 0;
  bool sent = false;
  Vector partial, result, staging;

  float *at(const ExchangePlace &place) {
    Vector &vector = place.memory == ExchangeMemory::Partial  ? partial
                     : place.memory == ExchangeMemory::Result ? result
                                                              : staging;
    return vector.data() + place.offset;
  }
};

class Simulation {
public:
  Simulation(ExchangeKind kind, int processes, int active, int64_t elements, const std::vector<Vector> &partials,
             const std::vector<TreeSum> &sums, const std::vector<int> &hosts = {})
      : staging_(exchangeStaging(kind, {processes, true, hosts}, elements)),
        inFlight_(static_cast<size_t>(processes) * static_cast<size_t>(processes)) {
    for (int process = 0; process < processes; ++process) {
      Simulated &each = processes_.emplace_back();
      each.rounds = exchangeRounds({kind, processes, process, active, elements, hosts}, sums);
      each.partial = partials[static_cast<size_t>(process)];
      each.result.assign(static_cast<size_t>(elements), std::numeric_limits<float>::quiet_NaN());
      each.staging.assign(static_cast<size_t>(staging_) + 1, mark);
    }
  }

  // Returns false if no process can go on before all have ended.
  bool run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t process = 0; process < processes_.size(); ++process)
        while (step(static_cast<int>(process)))
          progress = true;
    }
    for (const Simulated &each : processes_)
      if (each.round < each.rounds.size() || each.staging.back() != mark)
        return false;
    return std::all_of(inFlight_.begin(), inFlight_.end(), [](const auto &messages) { return messages.empty(); });
  }

  const Vector &result(int process) const { return processes_[static_cast<size_t>(process)].result; }
  // Returns the elements that `process` sends to other hosts.
  int64_t sentAway(int process, const std::vector<int> &hosts) const {
    auto hostOf = [&](int of) {
      int host = 0;
      for (int first = hosts[0]; first <= of; first += hosts[static_cast<size_t>(++host)])
        continue;
      return host;
    };
    int64_t sum = 0;
    for (const ExchangeRound &round : processes_[static_cast<size_t>(process)].rounds)
      for (const ExchangeMessage &message : round.sends)
        sum += hostOf(message.peer) == hostOf(process) ? 0 : message.elements;
    return sum;
  }

private:
  static constexpr float mark = 12345;

  bool step(int process) {
    Simulated &own = processes_[static_cast<size_t>(process)];
    if (own.round == own.rounds.size())
      return false;
    const ExchangeRound &round = own.rounds[own.round];
    if (!own.sent) {
      for (const ExchangeMessage &message : round.sends)
        messages(process, message.peer).emplace_back(own.at(message.place), own.at(message.place) + message.elements);
      own.sent = true;
    }
    for (const ExchangeMessage &message : round.receives)
      if (messages(message.peer, process).empty())
        return false;
    for (const ExchangeMessage &message : round.receives) {
      auto &waiting = messages(message.peer, process);
      EXPECT_EQ(static_cast<int64_t>(waiting.front().size()), message.elements);
      std::copy(waiting.front().begin(), waiting.front().end(), own.at(message.place));
      waiting.erase(waiting.begin());
    }
    for (const ExchangeSum &sum : round.sums)
      for (int64_t i = 0; i < sum.elements; ++i)
        own.at(sum.out)[i] = own.at(sum.left)[i] + own.at(sum.right)[i];
    for (const ExchangeCopy &copy : round.copies)
      std::copy_n(own.at(copy.from), copy.elements, own.at(copy.to));
    ++own.round;
    own.sent = false;
    return true;
  }

  // Returns the messages in flight from one process to another, oldest first.
  std::vector<Vector> &messages(int from, int to) {
    return inFlight_[static_cast<size_t>(from) * processes_.size() + static_cast<size_t>(to)];
  }

  int64_t staging_;
  std::vector<Simulated> processes_;
  std::vector<std::vector<Vector>> inFlight_;
};

int64_t differences(const Vector &a, const Vector &b) {
  int64_t count = 0;
  for (size_t i = 0; i < a.size(); ++i)
    count += std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i]);
  return count;
}

void check(int processes, int active, int64_t elements) {
  std::vector<Vector> partials;
  for (int process = 0; process < processes; ++process)
    partials.push_back(partialOf(process, elements));
  const std::vector<TreeSum> sums = treeOf(processes)[static_cast<size_t>(active)];
  Vector expected = elements > 0 ? treeResult(partials, sums) : Vector();
  for (ExchangeKind kind : kinds) {
    if (needsPowerOfTwo(kind) && !isPowerOfTwo(processes))
      continue;
    Simulation simulation(kind, processes, active, elements, partials, sums);
    std::string what = "kind " + std::to_string(static_cast<int>(kind)) + ", " + std::to_string(processes) +
                       " processes, " + std::to_string(active) + " active, " + std::to_string(elements) + " elements";
    ASSERT_TRUE(simulation.run()) << what;
    for (int process = 0; process < processes; ++process)
      ASSERT_EQ(differences(simulation.result(process), expected), 0) << what << ", process " << process;
  }
}

TEST(ExchangeTest, EqualsTheTreeForEveryNumberOfProcesses) {
  for (int processes = 1; processes <= 16; ++processes)
    for (int active = 1; active <= processes; ++active)
      for (int64_t elements : {0, 1, 15, 16, 17, 33, 100, 1003})
        check(processes, active, elements);
}

TEST(ExchangeTest, EqualsTheTreeForManyProcesses) {
  for (int processes = 17; processes <= 64; ++processes)
    for (int active = 1; active <= processes; ++active)
      check(processes, active, active == processes ? 1003 : active % 2 ? 203 : 17);
}

TEST(ExchangeTest, EqualsTheTreeForLargeVectors) {
  for (int processes : {2, 3, 4, 5, 8})
    for (int active : {1, processes - 1, processes})
      check(processes, active, processes == 4 ? (1 << 20) + 3 : (1 << 16) + 5);
}

void checkHosts(const std::vector<int> &hosts, int active, int64_t elements) {
  int processes = std::accumulate(hosts.begin(), hosts.end(), 0);
  std::vector<int> shards;
  for (int all = 1; shards.empty(); all *= 2)
    shards = splitShardsOnHosts(all, hosts);
  ASSERT_EQ(static_cast<int>(shards.size()), processes);
  std::vector<Vector> partials;
  for (int process = 0; process < processes; ++process)
    partials.push_back(partialOf(process, elements));
  const std::vector<TreeSum> sums = treeSums(shards)[static_cast<size_t>(active)];
  Vector expected = elements > 0 ? treeResult(partials, sums) : Vector();
  Simulation simulation(ExchangeKind::HostFirst, processes, active, elements, partials, sums, hosts);
  std::string what = std::to_string(active) + " active, " + std::to_string(elements) + " elements, hosts of";
  for (int size : hosts)
    what += " " + std::to_string(size);
  ASSERT_TRUE(simulation.run()) << what;
  for (int process = 0; process < processes; ++process)
    ASSERT_EQ(differences(simulation.result(process), expected), 0) << what << ", process " << process;
}

TEST(ExchangeTest, HostFirstEqualsTheTree) {
  for (const std::vector<int> &hosts : std::initializer_list<std::vector<int>>{
           {1}, {3}, {1, 1}, {2, 2}, {3, 2}, {1, 4}, {5, 1}, {2, 3, 4}, {1, 1, 8}, {8, 5, 3, 1}, {1, 2, 1, 2, 1}})
    for (int active = 1; active <= std::accumulate(hosts.begin(), hosts.end(), 0); ++active)
      for (int64_t elements : {0, 1, 15, 33, 100, 1003})
        checkHosts(hosts, active, elements);
}

TEST(ExchangeTest, HostFirstEqualsTheTreeForManyProcesses) {
  for (int size = 1; size <= 8; ++size)
    for (int count = 2; size * count <= 64; ++count)
      for (int active : {1, size, size * count - 1, size * count})
        checkHosts(std::vector<int>(static_cast<size_t>(count), size), active, 1003);
  std::vector<int> uneven;
  for (int processes = 0, size = 5; processes + size <= 64; processes += size, size = size % 8 + 1)
    uneven.push_back(size);
  for (int active : {1, 7, 40, 61})
    checkHosts(uneven, active, 4099);
}

// Every process of a host sends its part of the bytes to other hosts: 2 (H - 1) / H of the vector for the host.
TEST(ExchangeTest, HostFirstSendsLittleBetweenHosts) {
  constexpr int64_t elements = 1 << 16;
  std::vector<int> hosts = {4, 4};
  std::vector<Vector> partials(8, Vector(elements));
  const std::vector<TreeSum> sums = treeSums(splitShardsOnHosts(8, hosts))[8];
  Simulation first(ExchangeKind::HostFirst, 8, 8, elements, partials, sums, hosts);
  Simulation direct(ExchangeKind::Direct, 8, 8, elements, partials, sums);
  for (int process = 0; process < 8; ++process) {
    EXPECT_EQ(first.sentAway(process, hosts), elements / 4);
    EXPECT_EQ(direct.sentAway(process, hosts), elements);
  }
}

TEST(ExchangeTest, HostsGetSubtreesForTheirDevices) {
  EXPECT_EQ(splitShardsOnHosts(8, {4, 4}), std::vector<int>(8, 1));
  EXPECT_EQ(splitShardsOnHosts(16, {4, 1}), std::vector<int>({2, 2, 2, 2, 8}));
  EXPECT_EQ(splitShardsOnHosts(8, {5, 1}), std::vector<int>()); // a half has 4 shards
  EXPECT_EQ(splitShardsOnHosts(16, {5, 1}), std::vector<int>({1, 1, 2, 2, 2, 8}));
  EXPECT_EQ(splitShardsOnHosts(4, {1, 4}), std::vector<int>());
}

// The data show a wrong order: the sums from left to right differ from the tree's.
TEST(ExchangeTest, OtherOrdersDiffer) {
  constexpr int processes = 8, elements = 1000;
  std::vector<Vector> partials;
  for (int process = 0; process < processes; ++process)
    partials.push_back(partialOf(process, elements));
  std::vector<TreeSum> ring;
  for (int process = 1; process < processes; ++process)
    ring.push_back({0, process});
  Vector tree = treeResult(partials, treeOf(processes)[processes]);
  EXPECT_GT(differences(treeResult(partials, ring), tree), elements / 10);
  // An exchange that is told this order gives its bits.
  Simulation simulation(ExchangeKind::Direct, processes, processes, elements, partials, ring);
  ASSERT_TRUE(simulation.run());
  EXPECT_GT(differences(simulation.result(3), tree), elements / 10);
}

TEST(ExchangeTest, ChoosesByBytesAndProcesses) {
  EXPECT_EQ(chooseKind(4, {2}), ExchangeKind::Doubling);
  EXPECT_EQ(chooseKind(16 << 10, {8}), ExchangeKind::Doubling);
  EXPECT_EQ(chooseKind(16 << 10, {3}), ExchangeKind::Gather);
  EXPECT_EQ(chooseKind(16 << 10, {65}), ExchangeKind::Direct);
  EXPECT_EQ(chooseKind((16 << 10) + 4, {4}), ExchangeKind::Halving);
  EXPECT_EQ(chooseKind((16 << 10) + 4, {6}), ExchangeKind::Direct);
  EXPECT_EQ(chooseKind((1 << 20) + 4, {64}), ExchangeKind::Direct);
  EXPECT_EQ(chooseKind(100 << 20, {128}), ExchangeKind::Halving);
  EXPECT_EQ(chooseKind((16 << 10) + 4, {8, true, {4, 4}}), ExchangeKind::HostFirst);
  EXPECT_EQ(chooseKind(16 << 10, {8, true, {4, 4}}), ExchangeKind::Doubling);
  EXPECT_EQ(chooseKind((16 << 10) + 4, {2, true, {1, 1}}), ExchangeKind::Halving); // a process each
  // subtrees of different sizes
  EXPECT_EQ(chooseKind(4, {4, /*even=*/false}), ExchangeKind::Gather);
  EXPECT_EQ(chooseKind((16 << 10) + 4, {4, /*even=*/false}), ExchangeKind::Direct);
}

// Processes without rows send no partial sums.
TEST(ExchangeTest, ProcessesWithoutRowsSendOnlyResults) {
  for (ExchangeKind kind : kinds) {
    std::vector<ExchangeRound> rounds = exchangeRounds({kind, 4, 3, 1, 100}, {});
    for (const ExchangeRound &round : rounds)
      for (const ExchangeMessage &message : round.sends)
        EXPECT_EQ(message.place.memory, ExchangeMemory::Result);
  }
}

} // namespace
} // namespace mtrun
