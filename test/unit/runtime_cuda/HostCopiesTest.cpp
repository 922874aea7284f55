// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/HostCopies.h"
#include "gtest/gtest.h"

#include <cstring>

using namespace mtrun::cuda;

namespace {

struct Tensors {
  std::vector<std::byte> from, to;
  std::vector<HostCopy> pieces;
  explicit Tensors(std::initializer_list<uint64_t> sizes, uint8_t seed) {
    uint64_t bytes = 0;
    for (uint64_t size : sizes)
      bytes += size;
    from.resize(bytes);
    to.resize(bytes);
    for (uint64_t i = 0; i < bytes; ++i)
      from[i] = static_cast<std::byte>(i * 7 + i / 251 + seed);
    uint64_t at = 0;
    for (uint64_t size : sizes) {
      HostCopies::cut({to.data() + at, from.data() + at, size}, pieces);
      at += size;
    }
  }
  bool isCopied(size_t count) const {
    for (const HostCopy &piece : std::span(pieces).first(count))
      if (std::memcmp(piece.to, piece.from, piece.bytes) != 0)
        return false;
    return true;
  }
};

// What is told to be complete is, up to all of it; one run after another, small and large.
TEST(HostCopiesTest, PiecesAreCompleteWhenTheyAreSaidToBe) {
  HostCopies copies(4);
  for (uint8_t round = 0; round < 20; ++round) {
    Tensors tensors({uint64_t{3} << 20, 5, 0, (uint64_t{1} << 20) + 3}, round);
    size_t last = 0;
    EXPECT_TRUE(copies.run(tensors.pieces, [&](size_t count) {
      EXPECT_GT(count, last);
      EXPECT_TRUE(tensors.isCopied(count));
      last = count;
      return true;
    }));
    EXPECT_EQ(last, tensors.pieces.size());
    EXPECT_EQ(tensors.from, tensors.to);
    Tensors small({10, 20}, round);
    EXPECT_TRUE(copies.run(small.pieces, [](size_t) { return true; }));
    EXPECT_EQ(small.from, small.to);
  }
  EXPECT_TRUE(copies.run({}, [](size_t) { return false; }));
}

// A run that ends early touches nothing afterwards.
TEST(HostCopiesTest, ARunThatEndsEarlyIsOverWhenItReturns) {
  HostCopies copies(4);
  for (uint8_t round = 0; round < 20; ++round) {
    Tensors tensors({uint64_t{4} << 20}, round);
    EXPECT_FALSE(copies.run(tensors.pieces, [](size_t) { return false; }));
    std::vector<std::byte> after = tensors.to;
    tensors.from.assign(tensors.from.size(), std::byte{0});
    EXPECT_EQ(tensors.to, after);
  }
}

// Large tensors are cut, and the pieces are the whole.
TEST(HostCopiesTest, PiecesFollowEachOther) {
  for (uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{131072}, uint64_t{131073}, uint64_t{200} << 20}) {
    std::vector<HostCopy> pieces;
    auto *base = reinterpret_cast<std::byte *>(0x1000);
    HostCopies::cut({base, base, bytes}, pieces);
    uint64_t at = 0;
    for (const HostCopy &piece : pieces) {
      EXPECT_EQ(piece.to, base + at);
      EXPECT_EQ(piece.from, base + at);
      EXPECT_GT(piece.bytes, 0u);
      at += piece.bytes;
    }
    EXPECT_EQ(at, bytes);
    EXPECT_LE(pieces.size(), 257u);
  }
}

} // namespace
