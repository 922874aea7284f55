// SPDX-License-Identifier: Apache-2.0
//
// The order of an epoch: a function of (seed, epoch) and the number of samples alone.
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

// Writes the permutation of a shuffle buffer of `window` samples, for data that is read best in the order of its files:
// at i, one of the samples that wait (the first `window`, then each next one at the index of the one drawn). Drawn as
// epochOrder draws, counter (i, epoch) with the top bit of epoch set, so that the two orders share no bits.
void windowOrder(int64_t seed, int64_t epoch, int64_t size, int64_t window, int64_t *order);

// A number below `below` for batch `index` of an epoch, drawn as epochOrder draws with the second bit of epoch set.
int64_t drawGroup(int64_t seed, int64_t index, int64_t epoch, int64_t below);

// Either of the two orders, drawn a few samples at a time: the next epoch's during this one's batches, so that no batch
// waits for it.
class Shuffle {
public:
  // Of `size` samples; the only allocation. `window` 0: epochOrder.
  Shuffle(int64_t size, int64_t window) : window_(window), order_(static_cast<size_t>(size)) {}
  void begin(int64_t seed, int64_t epoch);
  void advance(int64_t draws);
  // Of the epoch that begin() named, or -1. All of it is drawn.
  int64_t epoch() const { return epoch_; }
  const std::vector<int64_t> &order();

private:
  int64_t window_, seed_ = 0, epoch_ = -1, drawn_ = 0;
  std::vector<int64_t> order_;
};

} // namespace mtrun
