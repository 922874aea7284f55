// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/Zip.h"

namespace mtc::keras {
namespace {

constexpr uint64_t narrowLimit = 0xffffffff;
constexpr uint16_t plainVersion = 20, wideVersion = 45, madeOnUnix = 3 << 8;
constexpr uint32_t ownersFile = 0100600u << 16; // the value that Python's zipfile writes
constexpr uint16_t firstDay = 1 << 5 | 1;       // January 1, 1980, so that the same members give the same bytes

// A record of little-endian numbers.
class Record {
public:
  Record &u16(uint64_t value) { return add(value, 2); }
  Record &u32(uint64_t value) { return add(value, 4); }
  Record &u64(uint64_t value) { return add(value, 8); }
  Record &text(const std::string &value) {
    bytes += value;
    return *this;
  }
  // A 32-bit field, with all bits set if the value does not fit.
  Record &narrow(uint64_t value) { return u32(std::min(value, narrowLimit)); }
  std::string bytes;

private:
  Record &add(uint64_t value, int count) {
    for (int i = 0; i < count; ++i)
      bytes += static_cast<char>(value >> 8 * i);
    return *this;
  }
};

struct Entry {
  std::string name;
  uint64_t header, begin, size; // offsets of the header and of the contents; bytes of the contents
  bool wideSize() const { return size >= narrowLimit; }
  bool wideHeader() const { return header >= narrowLimit; }
};

class Layout {
public:
  void add(ZipMember &member) {
    Entry entry = {member.name, at, 0, 0};
    for (const ExportPiece &piece : member.pieces)
      entry.size += piece.size;
    Record extra;
    if (entry.wideSize())
      extra.u16(1).u16(16).u64(entry.size).u64(entry.size);
    entry.begin = at + 30 + member.name.size() + extra.bytes.size();
    Record head;
    head.u32(0x04034b50).u16(entry.wideSize() ? wideVersion : plainVersion).u16(0).u16(0).u16(0).u16(firstDay);
    append(ExportPiece::bytes(std::move(head.bytes)));
    append(ExportPiece::crc32(entry.begin, entry.size));
    append(ExportPiece::bytes(Record()
                                  .narrow(entry.size)
                                  .narrow(entry.size)
                                  .u16(entry.name.size())
                                  .u16(extra.bytes.size())
                                  .text(entry.name)
                                  .text(extra.bytes)
                                  .bytes));
    for (ExportPiece &piece : member.pieces)
      append(std::move(piece));
    entries.push_back(entry);
  }

  void finish() {
    uint64_t directory = at;
    for (const Entry &entry : entries)
      addToDirectory(entry);
    uint64_t size = at - directory, end = at;
    Record last;
    if (directory >= narrowLimit) {
      last.u32(0x06064b50).u64(44).u16(madeOnUnix | wideVersion).u16(wideVersion).u32(0).u32(0);
      last.u64(entries.size()).u64(entries.size()).u64(size).u64(directory);
      last.u32(0x07064b50).u32(0).u64(end).u32(1);
    }
    last.u32(0x06054b50).u16(0).u16(0).u16(entries.size()).u16(entries.size()).u32(size).narrow(directory).u16(0);
    append(ExportPiece::bytes(std::move(last.bytes)));
  }

  std::vector<ExportPiece> pieces;

private:
  void addToDirectory(const Entry &entry) {
    Record wide, extra;
    if (entry.wideSize())
      wide.u64(entry.size).u64(entry.size);
    if (entry.wideHeader())
      wide.u64(entry.header);
    if (!wide.bytes.empty())
      extra.u16(1).u16(wide.bytes.size()).text(wide.bytes);
    uint16_t version = wide.bytes.empty() ? plainVersion : wideVersion;
    Record head;
    head.u32(0x02014b50).u16(madeOnUnix | version).u16(version).u16(0).u16(0).u16(0).u16(firstDay);
    append(ExportPiece::bytes(std::move(head.bytes)));
    append(ExportPiece::crc32(entry.begin, entry.size));
    Record tail;
    tail.narrow(entry.size).narrow(entry.size).u16(entry.name.size()).u16(extra.bytes.size()).u16(0).u16(0).u16(0);
    tail.u32(ownersFile).narrow(entry.header).text(entry.name).text(extra.bytes);
    append(ExportPiece::bytes(std::move(tail.bytes)));
  }

  void append(ExportPiece piece) {
    at += piece.fileBytes();
    pieces.push_back(std::move(piece));
  }

  std::vector<Entry> entries;
  uint64_t at = 0;
};

} // namespace

std::vector<ExportPiece> layOutZip(std::vector<ZipMember> members) {
  Layout layout;
  for (ZipMember &member : members)
    layout.add(member);
  layout.finish();
  return std::move(layout.pieces);
}

} // namespace mtc::keras
