// SPDX-License-Identifier: Apache-2.0
//
// Reads the directory of a zip archive, including ZIP64, and finds the bytes of each member. The archive is untrusted
// input: nothing larger than the file is allocated.
#pragma once

#include "runtime/support/status.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtrun {

struct ZipMember {
  std::string name;
  uint64_t method = 0; // 0: stored, 8: deflated
  uint64_t packed = 0, size = 0;
  uint64_t header = 0; // offset of the member's local header according to the directory
  uint32_t checksum = 0;
};

class ZipReader {
public:
  // Copies bytes of the archive from offset `at`; all of them are inside the archive. The archive need not be
  // contiguous in memory.
  using Read = std::function<void(uint64_t at, std::span<std::byte> bytes)>;

  ZipReader(uint64_t size, Read read) : size_(size), read_(std::move(read)) {}

  // Reads the directory at the end of the archive. Checks that names and headers of members are unique, and that the
  // members are no larger in total than the file. MT_CORRUPT.
  Status open();
  const std::vector<ZipMember> &members() const { return members_; }
  const std::string &comment() const { return comment_; }
  const ZipMember *find(std::string_view name) const;

  // Finds the offset of the member's compressed bytes, all of which are inside the archive. MT_CORRUPT.
  Status locate(const ZipMember &member, uint64_t &begin) const;

private:
  struct Directory {
    uint64_t begin = 0, end = 0, count = 0;
  };
  Status findDirectory(Directory &directory);
  Status readEntry(const Directory &directory, uint64_t &at, uint64_t index);
  Status checkMembers() const;

  uint64_t size_;
  Read read_;
  std::vector<ZipMember> members_;
  std::string comment_;
};

} // namespace mtrun
