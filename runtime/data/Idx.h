// SPDX-License-Identifier: Apache-2.0
//
// IDX files, MNIST's format: bytes 0, 0, type, rank; `rank` dimensions as big-endian u32; elements, row major. Plain or
// .gz.
#pragma once

#include "runtime/support/status.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mtrun {

// A u8 array; `bytes` has the product of `dims` elements.
struct IdxArray {
  std::string path; // path of the file that was read, with ".gz" if compressed
  std::vector<uint64_t> dims;
  std::unique_ptr<uint8_t[]> bytes;
  uint64_t size = 0;
};

// Reads `path`, or `path`.gz if `path` does not exist. The file is untrusted: MT_CORRUPT with the expected and found
// values, and no more memory is allocated than the file could fill. MT_IO, MT_NO_MEMORY.
Status readIdx(const std::string &path, int rank, IdxArray &array);

} // namespace mtrun
