// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/zip_read.h"

#include <algorithm>
#include <array>
#include <set>

namespace mtrun {

namespace {

using Bytes = std::span<const std::byte>;

// sizes of the records in bytes, without names and comments
constexpr size_t endSize = 22, entrySize = 46, localSize = 30;
constexpr size_t wideEndSize = 56, wideLocatorSize = 20; // sizes of ZIP64 records
constexpr uint64_t narrow = 0xffffffff, maxComment = 0xffff;

uint64_t number(Bytes bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i)
    value |= static_cast<uint64_t>(bytes[at + i]) << 8 * i;
  return value;
}

std::string text(Bytes bytes) { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }

// Reads the ZIP64 part of the extra field, which has the values of all fields that are 0xffffffff, in this order.
bool takeWide(Bytes extra, std::initializer_list<uint64_t *> fields) {
  size_t at = 0;
  while (extra.size() - at >= 4 && number(extra, at, 2) != 1)
    at = std::min<size_t>(extra.size(), at + 4 + number(extra, at + 2, 2));
  size_t end = extra.size() - at >= 4 ? std::min<size_t>(extra.size(), at + 4 + number(extra, at + 2, 2)) : at;
  at = std::min(end, at + 4);
  for (uint64_t *field : fields) {
    if (*field != narrow)
      continue;
    if (end - at < 8)
      return false;
    *field = number(extra, at, 8);
    at += 8;
  }
  return true;
}

} // namespace

Status ZipReader::findDirectory(Directory &directory) {
  std::vector<std::byte> tail(std::min<uint64_t>(size_, wideLocatorSize + endSize + maxComment));
  uint64_t tailBegin = size_ - tail.size();
  read_(tailBegin, tail);
  size_t at = tail.size();
  for (size_t back = endSize; back <= tail.size() && back <= endSize + maxComment && at == tail.size(); ++back)
    if (number(tail, tail.size() - back, 4) == 0x06054b50)
      at = tail.size() - back;
  if (at == tail.size())
    return {MT_CORRUPT, "expected a zip archive, found no directory at its end"};
  Bytes end = Bytes(tail).subspan(at);
  comment_ = text(end.subspan(endSize, std::min<size_t>(number(end, 20, 2), end.size() - endSize)));
  directory = {number(end, 16, 4), tailBegin + at, number(end, 10, 2)};
  if (at < wideLocatorSize || number(tail, at - wideLocatorSize, 4) != 0x07064b50)
    return {};
  uint64_t wide = number(tail, at - wideLocatorSize + 8, 8);
  std::array<std::byte, wideEndSize> record = {};
  if (directory.end >= wideEndSize && wide <= directory.end - wideEndSize)
    read_(wide, record);
  if (number(record, 0, 4) != 0x06064b50)
    return {MT_CORRUPT,
            "expected the directory of a large zip archive at byte " + std::to_string(wide) + ", found none"};
  directory = {number(record, 48, 8), wide, number(record, 32, 8)};
  return {};
}

Status ZipReader::readEntry(const Directory &directory, uint64_t &at, uint64_t index) {
  std::array<std::byte, entrySize> entry = {};
  uint64_t left = at <= directory.end ? directory.end - at : 0;
  if (left >= entrySize)
    read_(at, entry);
  if (number(entry, 0, 4) != 0x02014b50)
    return {MT_CORRUPT, "expected " + std::to_string(directory.count) + " entries in its directory, found " +
                            std::to_string(index)};
  uint64_t name = number(entry, 28, 2), extra = number(entry, 30, 2), comment = number(entry, 32, 2);
  std::string place = "entry " + std::to_string(index) + " of its directory ";
  if (left - entrySize < name + extra + comment)
    return {MT_CORRUPT, place + "does not end in it"};
  std::vector<std::byte> texts(name + extra);
  read_(at + entrySize, texts);
  ZipMember member;
  member.name = text(Bytes(texts).first(name));
  member.method = number(entry, 10, 2);
  member.checksum = static_cast<uint32_t>(number(entry, 16, 4));
  member.packed = number(entry, 20, 4);
  member.size = number(entry, 24, 4);
  member.header = number(entry, 42, 4);
  if (!takeWide(Bytes(texts).subspan(name), {&member.size, &member.packed, &member.header}))
    return {MT_CORRUPT, place + "lacks its size of 64 bits"};
  members_.push_back(std::move(member));
  at += entrySize + name + extra + comment;
  return {};
}

// Checks that members do not share bytes: otherwise a small archive could expand without limit.
Status ZipReader::checkMembers() const {
  std::set<std::string_view> names;
  std::set<uint64_t> headers;
  uint64_t left = size_;
  for (const ZipMember &member : members_) {
    if (!names.insert(member.name).second || !headers.insert(member.header).second)
      return {MT_CORRUPT, "expected an entry for each member, found two of " + member.name};
    if (member.packed > left)
      return {MT_CORRUPT, "expected members of at most the " + std::to_string(size_) +
                              " bytes of the file together, found " + std::to_string(size_ - left) + " and " +
                              std::to_string(member.packed) + " of " + member.name};
    left -= member.packed;
  }
  return {};
}

Status ZipReader::open() {
  Directory directory;
  if (Status s = findDirectory(directory); !s.ok())
    return s;
  uint64_t at = directory.begin;
  for (uint64_t i = 0; i < directory.count; ++i)
    if (Status s = readEntry(directory, at, i); !s.ok())
      return s;
  return checkMembers();
}

const ZipMember *ZipReader::find(std::string_view name) const {
  auto found = std::ranges::find(members_, name, &ZipMember::name);
  return found == members_.end() ? nullptr : &*found;
}

Status ZipReader::locate(const ZipMember &member, uint64_t &begin) const {
  std::array<std::byte, localSize> head = {};
  if (size_ >= localSize && member.header <= size_ - localSize)
    read_(member.header, head);
  if (number(head, 0, 4) != 0x04034b50)
    return {MT_CORRUPT, "expected a member at byte " + std::to_string(member.header) + ", found none"};
  begin = member.header + localSize + number(head, 26, 2) + number(head, 28, 2);
  if (begin > size_ || size_ - begin < member.packed)
    return {MT_CORRUPT, "expected " + std::to_string(member.packed) + " bytes, found the end of the archive"};
  return {};
}

} // namespace mtrun
