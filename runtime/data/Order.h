// SPDX-License-Identifier: Apache-2.0
//
// The order of an epoch is a function of only (seed, epoch) and the number of samples.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mtrun {

// Philox 4x32-10 (Salmon et al., 2011): 128 random bits from a 64-bit key and a 128-bit counter.
std::array<uint32_t, 4> philox(uint64_t key, uint64_t counterLow, uint64_t counterHigh);

// Writes a permutation of 0 .. size-1. Fisher-Yates from the end: for i = size-1 down to 1, swap order[i] with
// order[j], j = floor(r * (i + 1) / 2^64), r = the low 64 bits of philox(key = seed, counter = (i, epoch)), words in
// order.
void epochOrder(int64_t seed, int64_t epoch, int64_t size, int64_t *order);

// Writes the permutation of a shuffle buffer of `window` samples, for data that is fastest in file order: position i
// gets one of the waiting samples, and the next sample of the file replaces it in the buffer. Numbers are drawn as in
// epochOrder(), with counter (i, epoch) and the top bit of epoch set, so the two orders are independent.
void windowOrder(int64_t seed, int64_t epoch, int64_t size, int64_t window, int64_t *order);

// Returns a number below `below` for batch `index` of an epoch. It is drawn as in epochOrder(), with the second-highest
// bit of epoch set.
int64_t drawGroup(int64_t seed, int64_t index, int64_t epoch, int64_t below);

// Draws either of the two orders in parts: the order of the next epoch is drawn during the batches of the current one,
// so no batch waits for it.
class Shuffle {
public:
  // `size`: number of samples. `window` 0 selects epochOrder(). Allocates all memory.
  Shuffle(int64_t size, int64_t window) : window_(window), order_(static_cast<size_t>(size)) {}
  void begin(int64_t seed, int64_t epoch);
  void advance(int64_t draws);
  // Returns the epoch of begin(), or -1.
  int64_t epoch() const { return epoch_; }
  /// Returns the order, after all of it is drawn.
  const std::vector<int64_t> &order();

private:
  int64_t window_, seed_ = 0, epoch_ = -1, drawn_ = 0;
  std::vector<int64_t> order_;
};

} // namespace mtrun
