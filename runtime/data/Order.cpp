// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Order.h"

#include <algorithm>
#include <numeric>
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

static int64_t draw(int64_t seed, int64_t index, uint64_t epoch, int64_t below) {
  std::array<uint32_t, 4> bits = philox(uint64_t(seed), uint64_t(index), epoch);
  uint64_t r = uint64_t(bits[1]) << 32 | bits[0];
  return static_cast<int64_t>(static_cast<unsigned __int128>(r) * uint64_t(below) >> 64);
}

// Draws the swaps `from` to `to` of the size - 1 swaps of epochOrder().
static void drawEpoch(int64_t seed, int64_t epoch, int64_t size, int64_t from, int64_t to, int64_t *order) {
  for (int64_t i = size - 1 - from; i > size - 1 - to; --i)
    std::swap(order[i], order[draw(seed, i, uint64_t(epoch), i + 1)]);
}

static void drawWindow(int64_t seed, int64_t epoch, int64_t size, int64_t window, int64_t from, int64_t to,
                       int64_t *order) {
  // order[i .. i + window) are the waiting samples. A draw swaps the drawn sample with order[i], and the next sample
  // enters at the end of the window.
  for (int64_t i = from; i < to; ++i) {
    int64_t waiting = std::min(window, size - i);
    std::swap(order[i], order[i + draw(seed, i, uint64_t(epoch) | uint64_t(1) << 63, waiting)]);
  }
}

void epochOrder(int64_t seed, int64_t epoch, int64_t size, int64_t *order) {
  std::iota(order, order + size, int64_t(0));
  drawEpoch(seed, epoch, size, 0, size - 1, order);
}

void windowOrder(int64_t seed, int64_t epoch, int64_t size, int64_t window, int64_t *order) {
  std::iota(order, order + size, int64_t(0));
  drawWindow(seed, epoch, size, window, 0, size, order);
}

int64_t drawGroup(int64_t seed, int64_t index, int64_t epoch, int64_t below) {
  return draw(seed, index, uint64_t(epoch) | uint64_t(1) << 62, below);
}

void Shuffle::begin(int64_t seed, int64_t epoch) {
  seed_ = seed;
  epoch_ = epoch;
  drawn_ = 0;
  std::iota(order_.begin(), order_.end(), int64_t(0));
}

void Shuffle::advance(int64_t draws) {
  auto size = static_cast<int64_t>(order_.size());
  int64_t to = drawn_ + std::min(draws, (window_ ? size : size - 1) - drawn_);
  if (to <= drawn_)
    return;
  if (window_)
    drawWindow(seed_, epoch_, size, window_, drawn_, to, order_.data());
  else
    drawEpoch(seed_, epoch_, size, drawn_, to, order_.data());
  drawn_ = to;
}

const std::vector<int64_t> &Shuffle::order() {
  advance(static_cast<int64_t>(order_.size()));
  return order_;
}

} // namespace mtrun
