// SPDX-License-Identifier: Apache-2.0
//
// Writes .npz files whose arrays are written in parallel, a few rows at a time. Members are stored uncompressed at
// offsets that follow from their sizes.
#pragma once

#include "runtime/abi/mt.h"
#include "runtime/support/atomic_file.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mtrun {

class NpzWriter {
public:
  // Adds an array with this header (npyHeader, npyTextHeader) and `bytes` bytes of elements. Call before open().
  void add(const std::string &name, const std::string &header, uint64_t bytes);
  // MT_INVALID: two arrays have the same name, or the file exceeds 4 GiB, the limit without ZIP64. MT_IO.
  Status open(const std::string &path);
  // Writes the next bytes of array `index`, in the order of add().
  Status write(size_t index, const void *data, size_t size);
  // Finishes the file after all bytes are written.
  Status commit();

private:
  struct Member {
    std::string name, header;
    uint64_t size = 0, offset = 0, written = 0; // size: header and elements; offset: in the file
    uint32_t crc = 0;
    std::string record(bool central) const;
  };
  std::vector<Member> members_;
  uint64_t directory_ = 0; // offset of the directory
  AtomicFile file_;
};

// Return the header of an array of texts with `width` characters each, and one element: UTF-32, padded.
std::string npyTextHeader(uint64_t width, int64_t count);
std::string npyText(const std::string &text, uint64_t width);
// Returns the number of characters of a UTF-8 text. An invalid byte counts as a character.
uint64_t textWidth(const std::string &text);

} // namespace mtrun
