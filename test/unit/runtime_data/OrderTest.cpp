// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Order.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

using mtrun::epochOrder;

static std::vector<int64_t> order(int64_t seed, int64_t epoch, int64_t size) {
  std::vector<int64_t> result(static_cast<size_t>(size), -1);
  epochOrder(seed, epoch, size, result.data());
  return result;
}

// The known answers of the authors' own library (Random123, kat_vectors).
TEST(Order, PhiloxKnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(mtrun::philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(mtrun::philox(~0ull, ~0ull, ~0ull), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(mtrun::philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Order, IsAPermutation) {
  for (int64_t size : {0, 1, 2, 3, 10, 1000}) {
    std::vector<int64_t> sorted = order(7, 3, size), expected(static_cast<size_t>(size));
    std::sort(sorted.begin(), sorted.end());
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(sorted, expected);
  }
}

TEST(Order, DependsOnSeedAndEpochAlone) {
  EXPECT_EQ(order(7, 3, 100), order(7, 3, 100));
  EXPECT_NE(order(7, 3, 100), order(8, 3, 100));
  EXPECT_NE(order(7, 3, 100), order(7, 4, 100));
}

// The order is part of what makes a run the same run: it never changes.
TEST(Order, Golden) {
  EXPECT_EQ(order(1, 0, 10), (std::vector<int64_t>{4, 2, 5, 9, 7, 1, 0, 3, 8, 6}));
  EXPECT_EQ(order(12345678901234, 7, 8), (std::vector<int64_t>{2, 1, 4, 5, 0, 3, 6, 7}));
}

TEST(Order, EveryPlaceIsEquallyLikely) {
  std::vector<int> seen(10);
  for (int64_t epoch = 0; epoch < 10000; ++epoch)
    ++seen[static_cast<size_t>(order(1, epoch, 10)[0])];
  for (int count : seen)
    EXPECT_NEAR(count, 1000, 150); // five standard deviations
}

TEST(Order, Window) {
  constexpr int64_t size = 1000, window = 16;
  std::vector<int64_t> order(size), sorted, all(size), again(size);
  mtrun::windowOrder(5, 2, size, window, order.data());
  int64_t moved = 0;
  for (int64_t i = 0; i < size; ++i) {
    EXPECT_LT(order[static_cast<size_t>(i)], i + window); // only what has entered can be drawn
    moved += order[static_cast<size_t>(i)] != i;
  }
  EXPECT_GT(moved, size / 2);
  sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), int64_t(0));
  EXPECT_EQ(sorted, all);
  mtrun::windowOrder(5, 3, size, window, again.data());
  EXPECT_NE(order, again);
  mtrun::windowOrder(5, 2, size, 1, again.data());
  EXPECT_EQ(again, all);
}
