// SPDX-License-Identifier: Apache-2.0
//
// .npz files whose arrays are written a few rows at a time, all of them side by side: stored members at offsets that
// their sizes tell beforehand.
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
  // An array of this header (npyHeader, npyTextHeader) and so many bytes behind it. Before open().
  void add(const std::string &name, const std::string &header, uint64_t bytes);
  // MT_INVALID: two arrays of a name, or more than the 4 GiB that every reader knows. MT_IO.
  Status open(const std::string &path);
  // The next bytes of array `index`, in the order of add().
  Status write(size_t index, const void *data, size_t size);
  // All bytes are written.
  Status commit();

private:
  struct Member {
    std::string name, header;
    uint64_t size = 0, offset = 0, written = 0; // of header and bytes; of the member in the file
    uint32_t crc = 0;
    std::string record(bool central) const;
  };
  std::vector<Member> members_;
  uint64_t directory_ = 0; // where it begins
  AtomicFile file_;
};

// The header of an array of texts, of `width` characters each, and one of them: UTF-32, padded.
std::string npyTextHeader(uint64_t width, int64_t count);
std::string npyText(const std::string &text, uint64_t width);
// Characters of a text in UTF-8; a byte that is none counts as one.
uint64_t textWidth(const std::string &text);

} // namespace mtrun
