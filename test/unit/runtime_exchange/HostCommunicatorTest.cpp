// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/HostCommunicator.h"
#include "runtime/device/Collectives.h"
#include "runtime/support/subtrees.h"
#include "test/unit/runtime_exchange/SimulatedTransport.h"

#include <atomic>
#include <bit>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>

namespace mtrun::test {
namespace {

using Vector = std::vector<float>;

void addFloats(const float *a, const float *b, float *out, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i)
    out[i] = a[i] + b[i];
}

Vector partialOf(int process, int64_t elements, int turn) {
  Vector partial(static_cast<size_t>(elements));
  for (size_t i = 0; i < partial.size(); ++i)
    partial[i] = 1.0f / static_cast<float>(i % 1000 + 3 * static_cast<size_t>(process) + 1 + static_cast<size_t>(turn));
  return partial;
}

Vector expectedOf(int64_t elements, int turn, int processes, const std::vector<TreeSum> &sums) {
  std::vector<Vector> nodes;
  for (int process = 0; process < processes; ++process)
    nodes.push_back(partialOf(process, elements, turn));
  for (const TreeSum &sum : sums)
    addFloats(nodes[static_cast<size_t>(sum.left)].data(), nodes[static_cast<size_t>(sum.right)].data(),
              nodes[static_cast<size_t>(sum.left)].data(), elements);
  return nodes[0];
}

// All-reduces one after another, as in steps of a program: small, middle and large, with full and short batches.
void checkSequence(int processes, const std::vector<int64_t> &sizes, std::vector<int> shards = {},
                   const std::vector<int> &hosts = {}) {
  ExchangePlaces places = {processes, shards.empty(), hosts};
  if (shards.empty())
    shards = splitShards(static_cast<int>(std::bit_ceil(static_cast<unsigned>(processes))), processes);
  auto tree = treeSums(shards);
  std::atomic<int> wrong = 0;
  inProcesses(processes, [&](SimulatedTransport &transport) {
    HostCommunicator communicator(transport, {}, places);
    for (int turn = 0; turn < 3; ++turn)
      for (int64_t elements : sizes) {
        int active = turn == 1 ? std::max(1, processes - 1) : processes;
        Vector partial = partialOf(transport.process(), elements, turn), result(partial.size() + 1, -1);
        Vector staging(static_cast<size_t>(HostCommunicator::stagingElements(elements, places)) + 1, 7);
        auto &sums = tree[static_cast<size_t>(active)];
        Status status =
            communicator.allReduce({elements, active, partial.data(), result.data(), staging.data()}, sums, addFloats);
        Vector expected = expectedOf(elements, turn, processes, sums);
        expected.push_back(-1);
        wrong += !status.ok() || result != expected || staging.back() != 7;
      }
    wrong += processes > 1 && communicator.received() == 0;
  });
  EXPECT_EQ(wrong, 0) << processes << " processes";
}

TEST(HostCommunicatorTest, AddsInTreeOrder) {
  for (int processes : {1, 2, 3, 4, 5, 8})
    checkSequence(processes, {0, 1, 100, 4096, 5000, 70000});
}

// Four processes whose tree is not that of doubling.
TEST(HostCommunicatorTest, AddsSubtreesOfDifferentSizes) {
  checkSequence(4, {1, 100, 5000, 70000, (1 << 20) + 1}, {4, 2, 1, 1});
  checkSequence(4, {1, 100, 5000, 70000}, {1, 1, 2, 4});
}

TEST(HostCommunicatorTest, AddsInsideHostsFirst) {
  for (const std::vector<int> &hosts : {std::vector<int>{2, 2}, {3, 2}, {1, 4, 2}})
    checkSequence(std::accumulate(hosts.begin(), hosts.end(), 0), {1, 4096, 5000, 70000, (1 << 20) + 1},
                  splitShardsOnHosts(16, hosts), hosts);
}

// Each process sends the others a message of another length, all in one exchange between all-reduces.
TEST(HostCommunicatorTest, ExchangesRows) {
  constexpr int processes = 3;
  std::atomic<int> wrong = 0;
  auto byteOf = [](int from) { return std::byte{static_cast<uint8_t>(17 + from)}; };
  auto sizeOf = [](int from) { return static_cast<size_t>(1000 * from); }; // process 0 has none
  inProcesses(processes, [&](SimulatedTransport &transport) {
    HostCommunicator communicator(transport, {}, {transport.processes()});
    std::vector<std::vector<std::byte>> rows(processes);
    std::vector<HostCommunicator::Message> messages;
    for (int from = 0; from < processes; ++from)
      rows[from].assign(sizeOf(from), from == transport.process() ? byteOf(from) : std::byte{});
    for (int peer = 0; peer < processes; ++peer)
      if (peer != transport.process()) {
        messages.push_back({peer, false, rows[peer].data(), sizeOf(peer)});
        messages.push_back({peer, true, rows[transport.process()].data(), sizeOf(transport.process())});
      }
    for (int turn = 0; turn < 2; ++turn)
      wrong += !communicator.exchange(messages).ok();
    for (int from = 0; from < processes; ++from)
      wrong += rows[from] != std::vector<std::byte>(sizeOf(from), byteOf(from));
    wrong += communicator.received() != 2 * (3000 - sizeOf(transport.process()));
  });
  EXPECT_EQ(wrong, 0);
}

// More pieces than are in flight at once, the last of which is short.
TEST(HostCommunicatorTest, CutsLargeVectors) {
  checkSequence(2, {(5 << 20) + 3, 5});
  checkSequence(3, {(1 << 20) + 1, 70000});
}

// A reduceScatter() completes this process's chunk, and changes no other element.
TEST(HostCommunicatorTest, ScattersChunks) {
  for (int processes : {1, 2, 3, 5, 8})
    for (int64_t elements : {0, 1, 100, 5000, 70000, (5 << 20) + 3}) {
      if (elements > 1 << 20 && processes != 3)
        continue;
      auto tree = treeSums(splitShards(static_cast<int>(std::bit_ceil(static_cast<unsigned>(processes))), processes));
      std::atomic<int> wrong = 0;
      inProcesses(processes, [&](SimulatedTransport &transport) {
        HostCommunicator communicator(transport, {}, {transport.processes()});
        for (int turn = 0; turn < 2; ++turn) {
          int active = turn == 1 ? std::max(1, processes - 1) : processes;
          Vector partial = partialOf(transport.process(), elements, turn), result(partial.size(), -1);
          auto floats = HostCommunicator::scatterStagingElements(elements, processes);
          Vector staging(static_cast<size_t>(floats) + 1, 7);
          auto &sums = tree[static_cast<size_t>(active)];
          HostCommunicator::Reduction reduction = {elements, active, partial.data(), result.data(), staging.data()};
          wrong += !communicator.reduceScatter(reduction, sums, addFloats).ok() || staging.back() != 7;
          Vector expected = expectedOf(elements, turn, processes, sums);
          int64_t begin = chunkBegin(elements, transport.process(), processes);
          int64_t end = chunkBegin(elements, transport.process() + 1, processes);
          for (int64_t i = 0; i < elements; ++i)
            wrong += result[static_cast<size_t>(i)] != (begin <= i && i < end ? expected[static_cast<size_t>(i)] : -1);
        }
      });
      EXPECT_EQ(wrong, 0) << processes << " processes, " << elements << " elements";
    }
}

TEST(HostCommunicatorTest, CountsReceivedBytes) {
  inProcesses(4, [&](SimulatedTransport &transport) {
    HostCommunicator communicator(transport, {}, {transport.processes()});
    int64_t elements = 1 << 20;
    Vector partial(static_cast<size_t>(elements), 1), result(partial.size());
    Vector staging(static_cast<size_t>(HostCommunicator::stagingElements(elements, {4})));
    auto sums = treeSums({1, 1, 1, 1})[4];
    EXPECT_TRUE(
        communicator.allReduce({elements, 4, partial.data(), result.data(), staging.data()}, sums, addFloats).ok());
    EXPECT_EQ(communicator.received(), 2 * 3 * static_cast<uint64_t>(elements)); // 2 (P - 1) / P of the bytes
  });
}

// The gradient of an embedding: a few rows differ from process to process, the others are zeros of one sign.
Vector sparseOf(int process, int64_t elements) {
  Vector partial(static_cast<size_t>(elements));
  for (size_t row = static_cast<size_t>(process); row * 768 + 768 <= partial.size(); row += 97)
    for (size_t i = 0; i < 768; ++i)
      partial[row * 768 + i] = i == 5 ? -0.0f : 1.0f / static_cast<float>(row + i + 1);
  if (!partial.empty())
    partial.back() = 3;
  return partial;
}

TEST(HostCommunicatorTest, LeavesOutZeros) {
  for (int processes : {2, 3, 4})
    for (int64_t elements : {70000, (5 << 20) + 37})
      for (bool scatters : {false, true}) {
        auto sums = treeSums(splitShards(4, processes))[static_cast<size_t>(processes)];
        std::vector<Vector> nodes;
        for (int process = 0; process < processes; ++process)
          nodes.push_back(sparseOf(process, elements));
        for (const TreeSum &sum : sums)
          addFloats(nodes[static_cast<size_t>(sum.left)].data(), nodes[static_cast<size_t>(sum.right)].data(),
                    nodes[static_cast<size_t>(sum.left)].data(), elements);
        std::atomic<int> wrong = 0;
        inProcesses(processes, [&](SimulatedTransport &transport) {
          ExchangePlaces places = {processes};
          HostCommunicator communicator(transport, {}, places);
          Vector partial = sparseOf(transport.process(), elements), result(partial.size(), 9);
          auto floats = scatters ? HostCommunicator::scatterStagingElements(elements, processes)
                                 : HostCommunicator::stagingElements(elements, places);
          Vector staging(static_cast<size_t>(floats) + 1, 7);
          HostCommunicator::Reduction reduction = {elements, processes, partial.data(), result.data(), staging.data()};
          Status status = scatters ? communicator.reduceScatter(reduction, sums, addFloats)
                                   : communicator.allReduce(reduction, sums, addFloats);
          int64_t begin = scatters ? chunkBegin(elements, transport.process(), processes) : 0;
          int64_t end = scatters ? chunkBegin(elements, transport.process() + 1, processes) : elements;
          wrong += !status.ok() || staging.back() != 7;
          wrong += std::memcmp(&result[static_cast<size_t>(begin)], &nodes[0][static_cast<size_t>(begin)],
                               static_cast<size_t>(end - begin) * sizeof(float)) != 0;
          wrong += communicator.received() > static_cast<uint64_t>(elements); // of 4 bytes for each element, or more
        });
        EXPECT_EQ(wrong, 0) << processes << " processes, " << elements << " elements";
      }
}

// Every vector comes back, and no other bytes are taken for one.
TEST(SparseMessageTest, UnpacksWhatItPacks) {
  std::vector<uint8_t> bits;
  for (int64_t elements : {leastSparse, leastSparse + 1, leastSparse + 63, (int64_t{1} << 16) + 5})
    for (size_t every : {size_t{1}, size_t{3}, size_t{100}, size_t{5000}, size_t{1} << 30}) {
      Vector from(static_cast<size_t>(elements));
      for (size_t i = every == 1 ? 0 : every - 1; i < from.size(); i += every)
        from[i] = static_cast<float>(i + 1);
      Vector packed(static_cast<size_t>(elements) / 2 + 1, 7), to(from.size() + 1, 7);
      size_t bytes = packSparse(from.data(), elements, packed.data());
      EXPECT_EQ(packed.back(), 7);
      EXPECT_EQ(bytes == 0, every <= 100) << elements << " elements, one of " << every;
      if (bytes == 0)
        continue;
      std::memcpy(to.data(), packed.data(), bytes);
      EXPECT_TRUE(unpackSparse(to.data(), elements, bytes, bits));
      EXPECT_EQ(to.back(), 7);
      to.pop_back();
      EXPECT_EQ(to, from);
      for (size_t other : {size_t{0}, size_t{4}, bytes - 256, bytes - 4, bytes + 4, bytes + 256,
                           static_cast<size_t>(elements) * 4 - 4}) {
        Vector copy(from.size());
        std::memcpy(copy.data(), packed.data(), bytes);
        EXPECT_FALSE(unpackSparse(copy.data(), elements, other, bits)) << bytes << " as " << other;
      }
    }
  Vector small(static_cast<size_t>(leastSparse) - 1), packed(small.size());
  EXPECT_EQ(packSparse(small.data(), leastSparse - 1, packed.data()), 0u);
}

// A process that sends nothing is named by the others; what they return from then on is the first failure.
TEST(HostCommunicatorTest, NamesASilentProcess) {
  inProcesses(2, [&](SimulatedTransport &transport) {
    transport.answers = transport.process() == 0;
    std::string lost;
    HostCommunicator::Watch watch;
    watch.timeout = 0.05;
    watch.lose = [&](std::string message) {
      lost = message;
      return Status(MT_LOST, message);
    };
    watch.title = [](int process) { return "host " + std::to_string(process); };
    HostCommunicator communicator(transport, watch, {transport.processes()});
    float partial = 1, result = 0, staging[16];
    auto sums = treeSums({1, 1})[2];
    for (int turn = 0; turn < 2; ++turn) {
      Status status = communicator.allReduce({1, 2, &partial, &result, staging}, sums, addFloats);
      EXPECT_EQ(status.code(), MT_LOST);
      if (transport.process() == 0)
        EXPECT_EQ(status.message(), "host 1 was lost: it sent nothing for 0.05 seconds");
    }
    EXPECT_FALSE(lost.empty());
  });
}

// While it waits, a process notices that another is lost.
TEST(HostCommunicatorTest, EndsWhenAProcessIsLost) {
  inProcesses(2, [&](SimulatedTransport &transport) {
    if (transport.process() == 1)
      return;
    HostCommunicator::Watch watch;
    int checks = 0;
    watch.check = [&] { return ++checks < 3 ? Status() : Status(MT_LOST, "process 1 was lost"); };
    HostCommunicator communicator(transport, watch, {transport.processes()});
    float partial = 1, result = 0, staging[16];
    Status status = communicator.allReduce({1, 2, &partial, &result, staging}, treeSums({1, 1})[2], addFloats);
    EXPECT_EQ(status.message(), "process 1 was lost");
    EXPECT_EQ(checks, 3);
  });
}

// Processes that disagree about the size of an all-reduce fail.
TEST(HostCommunicatorTest, RefusesAnotherSize) {
  std::atomic<int> failed = 0;
  inProcesses(2, [&](SimulatedTransport &transport) {
    HostCommunicator::Watch watch;
    watch.timeout = 5;
    HostCommunicator communicator(transport, watch, {transport.processes()});
    int64_t elements = transport.process() == 0 ? 20 : 10;
    Vector partial(20), result(20), staging(32);
    failed +=
        !communicator
             .allReduce({elements, 2, partial.data(), result.data(), staging.data()}, treeSums({1, 1})[2], addFloats)
             .ok();
  });
  EXPECT_EQ(failed, 2);
}

} // namespace
} // namespace mtrun::test
