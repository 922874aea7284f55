// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace mtrun {

// Deflate turns a byte into at most 1032; a header that promises more is lying.
constexpr uint64_t maxInflation = 1032;

// Bytes of a zlib buffer for a file: no more than the file has, since zlib allocates three times as many for each file
// that is opened.
inline unsigned gzipBuffer(uint64_t fileSize) {
  return static_cast<unsigned>(std::clamp<uint64_t>(fileSize, 1 << 10, 1 << 17));
}

} // namespace mtrun
