// SPDX-License-Identifier: Apache-2.0
//
// .npz files: a zip archive of .npy files, stored or deflated. The directory at the end of the archive is what counts.
#include "runtime/data/Npy.h"

#include <zlib.h>

namespace mtrun {
namespace {

constexpr uint64_t kMaxInflation = 1032;              // of deflate; a directory that promises more is lying
constexpr size_t kEnd = 22, kEntry = 46, kLocal = 30; // bytes of the zip records without their names

uint64_t number(const uint8_t *bytes, int size) {
  uint64_t value = 0;
  for (int i = size - 1; i >= 0; --i)
    value = value << 8 | bytes[i];
  return value;
}

struct Member {
  std::string name;
  uint64_t method = 0, packed = 0, size = 0, offset = 0;
};

} // namespace

// Lists the members. ZIP64 is for archives above 4 GiB, which do not fit here.
static Status readDirectory(std::span<const uint8_t> file, const std::string &where, std::vector<Member> &members) {
  auto corrupt = [&](const std::string &text) { return Status(MT_CORRUPT, where + ": " + text); };
  size_t end = file.size();
  bool found = false;
  for (size_t tail = kEnd; !found && tail <= file.size() && tail <= kEnd + 65535; ++tail) {
    end = file.size() - tail;
    found = number(file.data() + end, 4) == 0x06054b50;
  }
  if (!found)
    return corrupt("expected a zip archive, found no directory at its end");
  uint64_t count = number(file.data() + end + 10, 2), at = number(file.data() + end + 16, 4);
  for (uint64_t i = 0; i < count; ++i) {
    if (at > end || end - at < kEntry || number(file.data() + at, 4) != 0x02014b50)
      return corrupt("expected " + std::to_string(count) + " entries in its directory, found " + std::to_string(i));
    const uint8_t *entry = file.data() + at;
    uint64_t name = number(entry + 28, 2), rest = number(entry + 30, 2) + number(entry + 32, 2);
    if (end - at - kEntry < name + rest)
      return corrupt("entry " + std::to_string(i) + " of its directory does not end in it");
    members.push_back({std::string(reinterpret_cast<const char *>(entry) + kEntry, name), number(entry + 10, 2),
                       number(entry + 20, 4), number(entry + 24, 4), number(entry + 42, 4)});
    at += kEntry + name + rest;
  }
  return {};
}

static Status inflateMember(std::span<const uint8_t> packed, const std::string &where, std::vector<uint8_t> &bytes) {
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return {MT_NO_MEMORY, where + ": out of memory"};
  stream.next_in = const_cast<uint8_t *>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size()); // below 4 GiB, as its field in the directory
  stream.next_out = bytes.data();
  stream.avail_out = static_cast<uInt>(bytes.size());
  int code = inflate(&stream, Z_FINISH);
  uint64_t got = stream.total_out;
  inflateEnd(&stream);
  if (code != Z_STREAM_END || got != bytes.size())
    return {MT_CORRUPT, where + ": expected " + std::to_string(bytes.size()) + " bytes of deflated data, found " +
                            std::to_string(got)};
  return {};
}

static Status readMember(std::span<const uint8_t> file, const Member &member, const std::string &where,
                         std::vector<uint8_t> &bytes) {
  auto corrupt = [&](const std::string &text) { return Status(MT_CORRUPT, where + ": " + text); };
  if (member.offset > file.size() || file.size() - member.offset < kLocal ||
      number(file.data() + member.offset, 4) != 0x04034b50)
    return corrupt("expected a member at byte " + std::to_string(member.offset) + ", found none");
  const uint8_t *local = file.data() + member.offset;
  uint64_t begin = member.offset + kLocal + number(local + 26, 2) + number(local + 28, 2);
  if (begin > file.size() || file.size() - begin < member.packed)
    return corrupt("expected " + std::to_string(member.packed) + " bytes, found the end of the archive");
  if (member.method != 0 && member.method != 8)
    return {MT_INVALID,
            where + ": expected a stored or deflated member, found method " + std::to_string(member.method)};
  if (member.method == 0 ? member.size != member.packed : member.size / kMaxInflation > member.packed)
    return corrupt("expected a size that " + std::to_string(member.packed) + " bytes can hold, found " +
                   std::to_string(member.size));
  bytes.resize(member.size);
  std::span<const uint8_t> packed = file.subspan(begin, member.packed);
  if (member.method == 0)
    bytes.assign(packed.begin(), packed.end());
  else if (Status s = inflateMember(packed, where, bytes); !s.ok())
    return s;
  return {};
}

Status openNpz(const DataSpec &spec, Table &table) {
  std::vector<uint8_t> file;
  std::string found, names;
  if (Status s = readData(spec.paths[0], file, found); !s.ok())
    return s;
  std::vector<Member> members;
  if (Status s = readDirectory(file, found, members); !s.ok())
    return s;
  bool chosen = !spec.input.empty() || !spec.target.empty();
  for (Member &member : members) {
    std::string where = found + ": " + member.name;
    if (member.name.ends_with(".npy"))
      member.name.resize(member.name.size() - 4);
    names += (names.empty() ? "" : ", ") + member.name;
    if (chosen && member.name != spec.input && member.name != spec.target)
      continue;
    std::vector<uint8_t> bytes;
    if (Status s = readMember(file, member, where, bytes); !s.ok())
      return s;
    size_t size = bytes.size();
    std::shared_ptr<const uint8_t> owner = share(std::move(bytes));
    Field field;
    if (Status s = parseNpy({owner.get(), size}, owner, where, field); !s.ok())
      return s;
    field.name = member.name;
    field.named = !chosen;
    field.role = member.name == spec.target ? MTRUN_TARGET : MTRUN_INPUT;
    table.fields.push_back(std::move(field));
  }
  size_t wanted = chosen ? !spec.input.empty() + !spec.target.empty() : 1;
  if (table.fields.size() < wanted)
    return {MT_INVALID, found + ": expected array " + (chosen ? spec.input + " " + spec.target : "") + ", found " +
                            (names.empty() ? "none" : names)};
  return {};
}

} // namespace mtrun
