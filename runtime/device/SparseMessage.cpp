// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/SparseMessage.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace mtrun {
namespace {

constexpr int64_t blockFloats = 64, sampled = 64;
constexpr size_t blockBytes = blockFloats * sizeof(float);

bool isZero(const float *block) {
  uint64_t words[blockBytes / sizeof(uint64_t)];
  std::memcpy(words, block, blockBytes);
  uint64_t any = 0;
  for (uint64_t word : words)
    any |= word;
  return any == 0;
}

// The sizes of the parts of a packed vector.
struct Layout {
  explicit Layout(int64_t elements)
      : blocks(elements / blockFloats), tail(static_cast<size_t>(elements % blockFloats) * sizeof(float)),
        bits(static_cast<size_t>(blocks + 7) / 8) {}
  int64_t blocks;
  size_t tail, bits;
};

} // namespace

size_t packSparse(const float *from, int64_t elements, float *to) {
  if (elements < leastSparse)
    return 0;
  Layout parts(elements);
  // Few vectors have zeros, so a few blocks decide whether to look at all of them.
  int64_t seen = 0, zeros = 0;
  for (int64_t block = 0; block < parts.blocks; block += std::max<int64_t>(parts.blocks / sampled, 1), ++seen)
    zeros += isZero(from + block * blockFloats);
  size_t most = static_cast<size_t>(elements / 2) * sizeof(float);
  if (2 * zeros <= seen || parts.tail + parts.bits > most)
    return 0;
  auto *bytes = reinterpret_cast<std::byte *>(to);
  std::byte *end = bytes;
  std::byte *last = bytes + (most - parts.tail - parts.bits);
  for (int64_t block = 0; block < parts.blocks; ++block)
    if (!isZero(from + block * blockFloats)) {
      if (end + blockBytes > last)
        return 0;
      std::memcpy(end, from + block * blockFloats, blockBytes);
      end += blockBytes;
    }
  std::memcpy(end, from + parts.blocks * blockFloats, parts.tail);
  end += parts.tail;
  std::memset(end, 0, parts.bits);
  for (int64_t block = 0; block < parts.blocks; ++block)
    if (!isZero(from + block * blockFloats))
      end[block / 8] |= std::byte{1} << (block % 8);
  return static_cast<size_t>(end - bytes) + parts.bits;
}

bool unpackSparse(float *memory, int64_t elements, size_t bytes, std::vector<uint8_t> &bits) {
  Layout parts(elements);
  if (elements < leastSparse || bytes < parts.tail + parts.bits ||
      bytes > static_cast<size_t>(elements / 2) * sizeof(float))
    return false;
  auto *data = reinterpret_cast<std::byte *>(memory);
  size_t packed = bytes - parts.tail - parts.bits;
  bits.resize(std::max(bits.size(), parts.bits));
  std::memcpy(bits.data(), data + packed + parts.tail, parts.bits);
  int64_t left = 0;
  for (size_t i = 0; i < parts.bits; ++i)
    left += std::popcount(bits[i]);
  bool beyond = parts.blocks % 8 != 0 && bits[parts.bits - 1] >> (parts.blocks % 8) != 0;
  if (beyond || static_cast<size_t>(left) * blockBytes != packed)
    return false;
  std::memmove(data + static_cast<size_t>(parts.blocks) * blockBytes, data + packed, parts.tail);
  // A block never moves to a lower place, so going downward overwrites none that is still packed.
  for (int64_t block = parts.blocks - 1; left <= block; --block) {
    std::byte *to = data + static_cast<size_t>(block) * blockBytes;
    if (bits[static_cast<size_t>(block) / 8] >> (block % 8) & 1)
      std::memmove(to, data + static_cast<size_t>(--left) * blockBytes, blockBytes);
    else
      std::memset(to, 0, blockBytes);
  }
  return true;
}

} // namespace mtrun
