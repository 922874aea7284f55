// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/NpzWriter.h"
#include "runtime/data/Npy.h"
#include "runtime/support/text.h"

#include <algorithm>
#include <zlib.h>

namespace mtrun {

static void put(std::string &out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i, value >>= 8)
    out += static_cast<char>(value & 0xff);
}

// Returns the member's local header, or its entry in the directory if `central` is true.
std::string NpzWriter::Member::record(bool central) const {
  constexpr uint64_t firstOfJanuary1980 = 1 << 5 | 1; // a fixed date, so that equal arrays give equal files
  std::string out;
  put(out, central ? 0x02014b50 : 0x04034b50, 4);
  if (central)
    put(out, 20, 2);    // version made by
  put(out, 20, 2);      // needs version 2.0
  put(out, 1 << 11, 2); // names are UTF-8
  put(out, 0, 2);       // method: stored
  put(out, 0, 2);
  put(out, firstOfJanuary1980, 2);
  put(out, crc, 4);
  put(out, size, 4);
  put(out, size, 4);
  put(out, name.size(), 2);
  put(out, 0, central ? 12 : 2); // lengths of extra field and comment, disk, attributes
  if (central)
    put(out, offset, 4);
  return out + name;
}

void NpzWriter::add(const std::string &name, const std::string &header, uint64_t bytes) {
  members_.push_back({name + ".npy", header, header.size() + bytes});
}

Status NpzWriter::open(const std::string &path) {
  for (Member &member : members_) {
    for (const Member *before = members_.data(); before != &member; ++before)
      if (before->name == member.name)
        return {MT_INVALID, path + ": expected arrays of different names, found two of " + member.name};
    member.offset = directory_;
    if (__builtin_add_overflow(directory_, member.size + member.record(false).size(), &directory_) ||
        directory_ > UINT32_MAX)
      return {MT_INVALID, path + ": expected arrays of at most 4 GiB together, found more; .npy has no such limit"};
  }
  if (Status s = file_.open(path); !s.ok())
    return s;
  for (Member &member : members_) {
    std::string header = std::move(member.header);
    if (Status s = write(static_cast<size_t>(&member - members_.data()), header.data(), header.size()); !s.ok())
      return s;
  }
  return {};
}

Status NpzWriter::write(size_t index, const void *data, size_t size) {
  Member &member = members_[index];
  uint64_t at = member.offset + member.record(false).size() + member.written;
  member.crc = static_cast<uint32_t>(crc32_z(member.crc, static_cast<const Bytef *>(data), size));
  member.written += size;
  return file_.writeAt(at, data, size);
}

Status NpzWriter::commit() {
  std::string directory;
  for (const Member &member : members_) {
    std::string record = member.record(false);
    if (Status s = file_.writeAt(member.offset, record.data(), record.size()); !s.ok())
      return s;
    directory += member.record(true);
  }
  uint64_t size = directory.size();
  put(directory, 0x06054b50, 4);
  put(directory, 0, 4);
  put(directory, members_.size(), 2);
  put(directory, members_.size(), 2);
  put(directory, size, 4);
  put(directory, directory_, 4);
  put(directory, 0, 2);
  if (Status s = file_.writeAt(directory_, directory.data(), directory.size()); !s.ok())
    return s;
  return file_.commit();
}

// Returns the next character, which begins at `at`. A byte that is not valid UTF-8 is a character.
static uint32_t nextCharacter(const std::string &text, size_t &at) {
  size_t size = std::max<size_t>(utf8Bytes(std::string_view(text).substr(at)), 1);
  uint32_t code = static_cast<uint8_t>(text[at++]);
  code = size > 1 ? code & (0x7fu >> size) : code;
  for (size_t i = 1; i < size; ++i)
    code = code << 6 | (static_cast<uint8_t>(text[at++]) & 0x3f);
  return code;
}

uint64_t textWidth(const std::string &text) {
  uint64_t count = 0;
  for (size_t at = 0; at < text.size(); ++count)
    nextCharacter(text, at);
  return count;
}

std::string npyText(const std::string &text, uint64_t width) {
  std::string out;
  for (size_t at = 0; at < text.size();)
    put(out, nextCharacter(text, at), 4);
  out.resize(width * 4);
  return out;
}

std::string npyTextHeader(uint64_t width, int64_t count) {
  return npyHeader("<U" + std::to_string(width), std::span(&count, 1));
}

} // namespace mtrun
