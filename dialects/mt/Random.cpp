// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/Random.h"

#include <bit>

std::array<uint32_t, 4> mlir::mt::philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t{0xD2511F53} * counter[0], b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

std::array<uint32_t, 2> mlir::mt::threefry(std::array<uint32_t, 2> counter, std::array<uint32_t, 2> key) {
  constexpr int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  std::array<uint32_t, 3> keys{key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA};
  auto [a, b] = counter;
  a += keys[0];
  b += keys[1];
  for (uint32_t i = 0; i < 5; ++i) {
    for (int rotation : rotations[i % 2]) {
      a += b;
      b = std::rotl(b, rotation) ^ a;
    }
    a += keys[(i + 1) % 3];
    b += keys[(i + 2) % 3] + i + 1;
  }
  return {a, b};
}

uint32_t mlir::mt::hashStream(std::string_view stream) {
  uint32_t hash = 2166136261;
  for (unsigned char c : stream)
    hash = (hash ^ c) * 16777619;
  return hash;
}

double mlir::mt::uniformElement(uint64_t seed, uint32_t stream, uint32_t step, uint64_t element) {
  uint64_t block = element / 4;
  std::array<uint32_t, 4> words =
      philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), step, stream},
             {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return (words[element % 4] >> 8) * 0x1p-24;
}
