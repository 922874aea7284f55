// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Fingerprint.h"

#include <bit>
#include <cstring>
#include <utility>

namespace mtrun {
namespace {

constexpr uint64_t k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273, k2 = 0x9ae16a3b2f90404f;

template <typename T> uint64_t read(const char *at) {
  T value;
  memcpy(&value, at, sizeof value);
  return value;
}
uint64_t word(const char *at) { return read<uint64_t>(at); }
uint64_t turn(uint64_t value, int bits) { return std::rotr(value, bits); }
uint64_t fold(uint64_t value) { return value ^ value >> 47; }
uint64_t join(uint64_t u, uint64_t v, uint64_t factor) { return fold((v ^ fold((u ^ v) * factor)) * factor) * factor; }

uint64_t upTo16(const char *s, uint64_t n) {
  uint64_t factor = k2 + n * 2;
  if (n >= 8) {
    uint64_t a = word(s) + k2, b = word(s + n - 8);
    return join(turn(b, 37) * factor + a, (turn(a, 25) + b) * factor, factor);
  }
  if (n >= 4)
    return join(n + (read<uint32_t>(s) << 3), read<uint32_t>(s + n - 4), factor);
  if (n == 0)
    return k2;
  auto byte = [s](uint64_t i) { return static_cast<uint64_t>(static_cast<uint8_t>(s[i])); };
  return fold((byte(0) + (byte(n >> 1) << 8)) * k2 ^ (n + (byte(n - 1) << 2)) * k0) * k2;
}

// The first and last 16 bytes as two words to join; `first` is the factor of the first word.
std::pair<uint64_t, uint64_t> ends(const char *s, uint64_t n, uint64_t first, uint64_t factor) {
  uint64_t a = word(s) * first, b = word(s + 8), c = word(s + n - 8) * factor, d = word(s + n - 16) * k2;
  return {turn(a + b, 43) + turn(c, 30) + d, a + turn(b + k2, 18) + c};
}

uint64_t upTo64(const char *s, uint64_t n) {
  uint64_t factor = k2 + n * 2;
  auto [y, rest] = ends(s, n, k2, factor);
  uint64_t z = join(y, rest, factor);
  uint64_t e = word(s + 16) * factor, f = word(s + 24);
  uint64_t g = (y + word(s + n - 32)) * factor, h = (z + word(s + n - 24)) * factor;
  return join(turn(e + f, 43) + turn(g, 30) + h, e + turn(f + word(s) * k2, 18) + g, factor);
}

// The state over blocks of 64 bytes.
struct State {
  uint64_t x, y, z;
  std::pair<uint64_t, uint64_t> v, w;

  static std::pair<uint64_t, uint64_t> mix(const char *s, uint64_t a, uint64_t b) {
    a += word(s);
    uint64_t sum = a + word(s + 8) + word(s + 16);
    return {sum + word(s + 24), turn(b + a + word(s + 24), 21) + turn(sum, 44) + a};
  }
  // `weight` is 1 for all blocks but the last.
  void block(const char *s, uint64_t factor, uint64_t weight) {
    x = turn(x + y + v.first + word(s + 8), 37) * factor;
    y = turn(y + v.second + word(s + 48), 42) * factor;
    x ^= w.second * weight;
    y += v.first * weight + word(s + 40);
    z = turn(z + w.first, 33) * factor;
    v = mix(s, v.second * factor, x + w.first);
    w = mix(s + 32, z + w.second, y + word(s + 16));
    std::swap(z, x);
  }
};

} // namespace

uint64_t fingerprint(std::string_view text) {
  const char *s = text.data();
  uint64_t n = text.size();
  if (n <= 16)
    return upTo16(s, n);
  if (n <= 32) {
    auto [u, v] = ends(s, n, k1, k2 + n * 2);
    return join(u, v, k2 + n * 2);
  }
  if (n <= 64)
    return upTo64(s, n);
  constexpr uint64_t seed = 81;
  State state = {seed * k2 + word(s), seed * k1 + 113, fold((seed * k1 + 113) * k2 + 113) * k2, {}, {}};
  uint64_t left = (n - 1) % 64, blocks = (n - 1) / 64;
  for (uint64_t i = 0; i < blocks; ++i)
    state.block(s + 64 * i, k1, 1);
  uint64_t factor = k1 + ((state.z & 0xff) << 1);
  state.w.first += left;
  state.v.first += state.w.first;
  state.w.first += state.v.first;
  state.block(s + n - 64, factor, 9);
  return join(join(state.v.first, state.w.first, factor) + fold(state.y) * k0 + state.z,
              join(state.v.second, state.w.second, factor) + state.x, factor);
}

} // namespace mtrun
