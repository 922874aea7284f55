// SPDX-License-Identifier: Apache-2.0
//
// CRC-32C (Castagnoli) of TFRecord files and TensorBoard's event files, eight bytes per iteration.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

namespace mtrun {

namespace detail {
inline constexpr auto crc32cTables = [] {
  std::array<std::array<uint32_t, 256>, 8> tables = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit)
      c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
    tables[0][i] = c;
  }
  for (size_t t = 1; t < 8; ++t)
    for (size_t i = 0; i < 256; ++i)
      tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xff];
  return tables;
}();
} // namespace detail

inline uint32_t crc32c(const void *data, size_t size) {
  const auto &tables = detail::crc32cTables;
  const auto *bytes = static_cast<const uint8_t *>(data);
  uint32_t crc = ~0u;
  for (; size >= 8; size -= 8, bytes += 8) {
    uint64_t word = 0; // all supported targets are little endian
    memcpy(&word, bytes, sizeof word);
    word ^= crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i)
      crc ^= tables[7 - i][word >> 8 * i & 0xff];
  }
  for (; size > 0; --size, ++bytes)
    crc = crc >> 8 ^ tables[0][(crc ^ *bytes) & 0xff];
  return ~crc;
}

// The masked form that TFRecord and event files store.
inline uint32_t maskedCrc32c(const void *data, size_t size) {
  uint32_t crc = crc32c(data, size);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

} // namespace mtrun
