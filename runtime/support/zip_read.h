// SPDX-License-Identifier: Apache-2.0
//
// The directory of a zip archive, ZIP64 too, and where its members' bytes lie. Archives are from strangers: nothing is
// asked for that the file cannot hold.
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
  uint64_t header = 0; // where its own header is said to be
  uint32_t checksum = 0;
};

class ZipReader {
public:
  // Copies bytes of the archive from `at` on, all of which are within it: it need not lie in memory in one piece.
  using Read = std::function<void(uint64_t at, std::span<std::byte> bytes)>;

  ZipReader(uint64_t size, Read read) : size_(size), read_(std::move(read)) {}

  // Reads the directory at the archive's end, which is what counts. No two members have a name or a header in common,
  // and together they are no larger than the file. MT_CORRUPT.
  Status open();
  const std::vector<ZipMember> &members() const { return members_; }
  const std::string &comment() const { return comment_; }
  const ZipMember *find(std::string_view name) const;

  // Where the member's packed bytes begin; they end within the archive. MT_CORRUPT.
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
