// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace mtrun {

// The maximum ratio of deflate: a header that claims more is wrong.
constexpr uint64_t maxInflation = 1032;

// Returns the size of a zlib buffer for a file: at most the file's size, because zlib allocates three buffers for each
// open file.
inline unsigned gzipBuffer(uint64_t fileSize) {
  return static_cast<unsigned>(std::clamp<uint64_t>(fileSize, 1 << 10, 1 << 17));
}

} // namespace mtrun
