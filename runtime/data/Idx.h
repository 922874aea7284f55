// SPDX-License-Identifier: Apache-2.0
//
// IDX files (MNIST's format): bytes 0, 0, type, rank; rank big-endian u32 dimensions; elements, row major. Plain or
// .gz.
#pragma once

#include "runtime/support/status.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mtrun {

// A u8 array. bytes[0 .. product of dims).
struct IdxArray {
  std::string path; // that was read, with its .gz
  std::vector<uint64_t> dims;
  std::unique_ptr<uint8_t[]> bytes;
  uint64_t size = 0;
};

// Reads `path`, or `path`.gz where there is no `path`. Any bytes are fine: MT_CORRUPT says what was expected and what
// was found, and nothing is allocated that the file could not fill. MT_IO, MT_NO_MEMORY.
Status readIdx(const std::string &path, int rank, IdxArray &array);

} // namespace mtrun
