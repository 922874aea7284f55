// SPDX-License-Identifier: Apache-2.0
#include "test/golden/Batches.h"

#include <algorithm>

namespace golden {
namespace {

/// `numpy.random.default_rng(seed)`: PCG64 (XSL-RR 128/64) seeded through SeedSequence.
class Generator {
public:
  explicit Generator(uint32_t seed) {
    uint32_t pool[4], constant = 0x43b0d7e5u;
    auto hash = [&](uint32_t value) {
      value ^= constant;
      constant *= 0x931e8875u;
      value *= constant;
      return value ^ (value >> 16);
    };
    for (int i = 0; i < 4; ++i)
      pool[i] = hash(i == 0 ? seed : 0);
    for (int from = 0; from < 4; ++from)
      for (int to = 0; to < 4; ++to)
        if (from != to) {
          uint32_t mixed = 0xca01f9ddu * pool[to] - 0x4973f715u * hash(pool[from]);
          pool[to] = mixed ^ (mixed >> 16);
        }
    uint64_t words[4] = {};
    constant = 0x8b51f9ddu;
    for (int i = 0; i < 8; ++i) {
      uint32_t value = pool[i % 4] ^ constant;
      constant *= 0x58f38dedu;
      value *= constant;
      words[i / 2] |= uint64_t(value ^ (value >> 16)) << (32 * (i % 2));
    }
    increment = (wide(words[2], words[3]) << 1) | 1;
    state = increment + wide(words[0], words[1]);
    advance();
  }

  double uniform() { return double(next64() >> 11) * 0x1p-53; }

  /// `integers(0, bound)`: Lemire's method on 32-bit halves.
  uint32_t below(uint32_t bound) {
    uint64_t product = uint64_t(next32()) * bound;
    if (uint32_t(product) < bound)
      for (uint32_t threshold = -bound % bound; uint32_t(product) < threshold;)
        product = uint64_t(next32()) * bound;
    return product >> 32;
  }

private:
  __extension__ using Wide = unsigned __int128;
  static Wide wide(uint64_t high, uint64_t low) { return Wide(high) << 64 | low; }
  void advance() { state = state * wide(0x2360ed051fc65da4u, 0x4385df649fccf645u) + increment; }
  uint64_t next64() {
    advance();
    uint64_t folded = uint64_t(state >> 64) ^ uint64_t(state);
    unsigned turn = unsigned(state >> 122);
    return folded >> turn | folded << (-turn & 63);
  }
  uint32_t next32() {
    if (hasHalf) {
      hasHalf = false;
      return half;
    }
    uint64_t value = next64();
    hasHalf = true;
    half = value >> 32;
    return uint32_t(value);
  }

  Wide state, increment;
  bool hasHalf = false;
  uint32_t half = 0;
};

constexpr int64_t pixels = 784, classes = 10;

} // namespace

Batch makeBatch(int64_t rows, uint32_t seed) {
  std::vector<double> templates(classes * pixels);
  Generator templateGenerator(99), generator(seed);
  for (double &value : templates)
    value = templateGenerator.uniform();
  Batch batch{std::vector<float>(rows * pixels), std::vector<int32_t>(rows), std::vector<float>(rows * classes)};
  for (int64_t row = 0; row < rows; ++row) {
    batch.labels[row] = generator.below(classes);
    batch.oneHot[row * classes + batch.labels[row]] = 1;
  }
  for (int64_t i = 0; i < rows * pixels; ++i) {
    double value = 0.7 * templates[batch.labels[i / pixels] * pixels + i % pixels] + 0.5 * generator.uniform();
    batch.images[i] = float(std::clamp(value, 0.0, 1.0));
  }
  return batch;
}

} // namespace golden
