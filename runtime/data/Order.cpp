// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Order.h"

#include <utility>

namespace mtrun {

std::array<uint32_t, 4> philox(uint64_t key, uint64_t counterLow, uint64_t counterHigh) {
  uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
  std::array<uint32_t, 4> c = {uint32_t(counterLow), uint32_t(counterLow >> 32), uint32_t(counterHigh),
                               uint32_t(counterHigh >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t(0xD2511F53u) * c[0], b = uint64_t(0xCD9E8D57u) * c[2];
    c = {uint32_t(b >> 32) ^ c[1] ^ k0, uint32_t(b), uint32_t(a >> 32) ^ c[3] ^ k1, uint32_t(a)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

void epochOrder(int64_t seed, int64_t epoch, int64_t size, int64_t *order) {
  for (int64_t i = 0; i < size; ++i)
    order[i] = i;
  for (int64_t i = size - 1; i > 0; --i) {
    std::array<uint32_t, 4> bits = philox(uint64_t(seed), uint64_t(i), uint64_t(epoch));
    uint64_t r = uint64_t(bits[1]) << 32 | bits[0];
    auto j = static_cast<int64_t>(static_cast<unsigned __int128>(r) * (uint64_t(i) + 1) >> 64);
    std::swap(order[i], order[j]);
  }
}

void windowOrder(int64_t seed, int64_t epoch, int64_t size, int64_t window, int64_t *order) {
  for (int64_t i = 0; i < size; ++i)
    order[i] = i;
  // order[i .. i + window) are the samples that wait. Drawing one moves order[i] to its place, and the next sample
  // enters at the end.
  for (int64_t i = 0; i < size; ++i) {
    int64_t waiting = window < size - i ? window : size - i;
    std::array<uint32_t, 4> bits = philox(uint64_t(seed), uint64_t(i), uint64_t(epoch) | uint64_t(1) << 63);
    uint64_t r = uint64_t(bits[1]) << 32 | bits[0];
    auto j = static_cast<int64_t>(static_cast<unsigned __int128>(r) * uint64_t(waiting) >> 64);
    std::swap(order[i], order[i + j]);
  }
}

} // namespace mtrun
