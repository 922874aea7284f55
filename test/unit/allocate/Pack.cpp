// SPDX-License-Identifier: Apache-2.0
#include "compiler/allocate/Pack.h"
#include "compiler/allocate/Occupied.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace mtc {
namespace {

// As of a network's step: what is kept from a layer's forward pass to its gradient, and what lives shortly.
std::vector<LiveBuffer> network(uint32_t seed, int layers) {
  std::mt19937 random(seed);
  auto size = [&] { return bufferAlignment * static_cast<int64_t>(1 + random() % 1000); };
  std::vector<LiveBuffer> buffers;
  for (int layer = 0; layer < layers; ++layer) {
    int64_t forward = 4 * layer, backward = 8 * layers - 4 * layer;
    for (int kept = 0; kept < 3; ++kept)
      buffers.push_back({size(), forward + kept, backward + kept});
    for (int kept = 0; kept < 2; ++kept) {
      buffers.push_back({size(), forward + kept, forward + kept + 1});
      int64_t bytes = size();
      buffers.push_back({bytes, backward + kept, backward + kept + 1 + static_cast<int64_t>(random() % 6)});
    }
  }
  return buffers;
}

void expectApart(const std::vector<LiveBuffer> &buffers, const Packing &packing) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(packing.offsets[i] % bufferAlignment, 0);
    EXPECT_LE(packing.offsets[i] + buffers[i].bytes, packing.bytes);
    for (size_t j = 0; j < i; ++j)
      if (buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last)
        EXPECT_TRUE(packing.offsets[i] + buffers[i].bytes <= packing.offsets[j] ||
                    packing.offsets[j] + buffers[j].bytes <= packing.offsets[i])
            << i << " and " << j;
  }
}

TEST(Pack, NearTheBound) {
  double sum = 0;
#if __has_feature(address_sanitizer)
  constexpr int count = 15; // a second each
#else
  constexpr int count = 100;
#endif
  for (uint32_t seed = 0; seed < count; ++seed) {
    std::vector<LiveBuffer> buffers = network(seed, 8);
    Packing packing = packBuffers(buffers);
    expectApart(buffers, packing);
    double ratio = static_cast<double>(packing.bytes) / static_cast<double>(livenessBound(buffers));
    EXPECT_GE(ratio, 1);
    EXPECT_LE(ratio, 1.025) << seed; // the orders as they are: 1.06
    sum += ratio;
  }
  EXPECT_LE(sum / count, 1.002); // the orders as they are: 1.007
}

// The tree, for many buffers, answers as the list of all that have been placed.
TEST(Pack, TreeAndListAgree) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::vector<LiveBuffer> buffers = network(seed, 1 + static_cast<int>(seed));
    std::mt19937 random(seed);
    std::shuffle(buffers.begin(), buffers.end(), random);
    OccupiedList list(buffers);
    OccupiedTree tree(buffers);
    for (const LiveBuffer &buffer : buffers) {
      int64_t begin = list.tightestGap(buffer);
      ASSERT_EQ(tree.tightestGap(buffer), begin) << seed;
      // Now and then above the gap, so that gaps of all sizes are left.
      begin += random() % 4 == 0 ? static_cast<int64_t>(random() % 100000) * bufferAlignment : 0;
      if (list.tightestGap({1, buffer.first, buffer.last}) <= begin) {
        list.place(buffer, begin);
        tree.place(buffer, begin);
      }
    }
  }
}

TEST(Pack, Nothing) {
  EXPECT_EQ(packBuffers({}).bytes, 0);
  std::vector<LiveBuffer> empty = {{0, 0, 5}, {64, 2, 3}, {0, 1, 2}};
  EXPECT_EQ(packBuffers(empty).bytes, 64);
}

} // namespace
} // namespace mtc
