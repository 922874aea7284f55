// SPDX-License-Identifier: Apache-2.0
//
// .npz files: a zip archive of .npy files, stored or deflated. Of what a model does not take only names are read.
#include "runtime/data/Npy.h"
#include "runtime/data/SourceKind.h"
#include "runtime/data/Npy.h"
#include "runtime/device/AvailableMemory.h"
#include "runtime/support/zip_read.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
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

// Members that share bytes of the file would let a small one fill any memory.
static Status checkMembers(uint64_t fileSize, const std::string &where, std::vector<Member> &members) {
  std::set<std::string> names;
  std::set<uint64_t> offsets;
  uint64_t packed = 0;
  for (const Member &member : members) {
    packed += member.packed; // of at most 65535 members below 4 GiB
    if (!names.insert(member.name).second || !offsets.insert(member.offset).second)
      return {MT_CORRUPT, where + ": expected an entry for each member, found two of " + member.name};
  }
  if (packed > fileSize)
    return {MT_CORRUPT, where + ": expected members of at most the " + std::to_string(fileSize) +
                            " bytes of the file together, found " + std::to_string(packed)};
  return {};
}

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
  return checkMembers(file.size(), where, members);
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

namespace {

// What a model takes of an archive: which members, and in which role.
class Choice {
public:
  Choice(const DataSpec &spec, const std::vector<Member> &members);
  // The role that a member was given; none: it is bound by its name.
  std::optional<mtrun_role> given(const std::string &name) const {
    return name == input_    ? std::optional(MTRUN_INPUT)
           : name == target_ ? std::optional(MTRUN_TARGET)
                             : std::nullopt;
  }
  bool takes(const std::string &name) const { return given(name) || fits(name) || (!known() && !other(name)); }
  // Of the split that was not asked for.
  bool other(const std::string &name) const { return !others_.empty() && name.ends_with(others_); }
  std::string missing(const std::vector<Member> &members) const;

private:
  bool known() const { return !spec_.wanted.empty(); }
  bool fits(const std::string &name) const {
    return std::any_of(spec_.wanted.begin(), spec_.wanted.end(), [&](const Wanted &entry) {
      return entry.name == name || (entry.role == MTRUN_TARGET && entry.name == name + "_target");
    });
  }
  bool filled(mtrun_role role, const std::vector<Member> &members) const {
    return std::any_of(members.begin(), members.end(), [&](const Member &member) {
      return std::any_of(spec_.wanted.begin(), spec_.wanted.end(), [&](const Wanted &entry) {
        return entry.role == role && (entry.name == member.name || entry.name == member.name + "_target");
      });
    });
  }

  const DataSpec &spec_;
  std::string input_, target_, others_;
};

} // namespace

static bool has(const std::vector<Member> &members, const std::string &name) {
  return std::any_of(members.begin(), members.end(), [&](const Member &member) { return member.name == name; });
}

// Without keys: Keras' x_train, y_train, x_test and y_test, or x and y, where no name of the model's is there.
Choice::Choice(const DataSpec &spec, const std::vector<Member> &members)
    : spec_(spec), input_(spec.input), target_(spec.target) {
  std::string own = spec.test ? "_test" : "_train";
  bool split = has(members, "x" + own);
  if (split)
    others_ = spec.test ? "_train" : "_test";
  std::string end = split ? own : "";
  for (auto [role, chosen, name] : {std::tuple(MTRUN_INPUT, &input_, "x"), std::tuple(MTRUN_TARGET, &target_, "y")})
    if (chosen->empty() && has(members, name + end) && !filled(role, members))
      *chosen = name + end;
}

// Names that the user gave and the archive lacks.
std::string Choice::missing(const std::vector<Member> &members) const {
  std::string names;
  for (const std::string &name : {spec_.input, spec_.target})
    if (!name.empty() && !has(members, name))
      names += (names.empty() ? "" : " and ") + name;
  return names;
}

static Status readArray(std::span<const uint8_t> file, const Member &member, const std::string &where, Field &field) {
  std::vector<uint8_t> bytes;
  if (Status s = readMember(file, member, where, bytes); !s.ok())
    return s;
  size_t size = bytes.size();
  std::shared_ptr<const uint8_t> owner = share(std::move(bytes));
  return parseNpy({owner.get(), size}, owner, where, field);
}

// Reads what is chosen. An array that nobody asked for by name need not be one that we can read.
static Status readChosen(std::span<const uint8_t> file, const std::string &found, const std::vector<Member> &members,
                         const Choice &choice, bool known, Table &table) {
  std::string left;
  for (const Member &member : members) {
    if (!choice.takes(member.name)) {
      if (!choice.other(member.name))
        left += (left.empty() ? "" : ", ") + member.name;
      continue;
    }
    Field field;
    Status status = readArray(file, member, found + ": " + member.name, field);
    bool different = !table.fields.empty() && field.samples != table.fields[0].samples;
    if (!known && !choice.given(member.name) && (!status.ok() || different)) {
      table.notes.push_back(status.ok() ? found + ": " + member.name + ": left out, of " +
                                              std::to_string(field.samples) + " samples"
                                        : status.message() + "; left out");
      continue;
    }
    if (!status.ok())
      return status;
    field.name = member.name;
    field.named = !choice.given(member.name);
    field.role = choice.given(member.name).value_or(MTRUN_INPUT);
    table.fields.push_back(std::move(field));
  }
  if (!left.empty())
    table.notes.push_back(found + ": arrays that the model does not take: " + left +
                          (has(members, "sample_weight") && !choice.takes("sample_weight")
                               ? "; for weights of samples compile it with mtc compile --sample-weights"
                               : ""));
  return {};
}

static Status openNpz(const DataSpec &spec, Table &table) {
  std::vector<uint8_t> file;
  std::string found, names;
  if (Status s = readData(spec.paths[0], file, found); !s.ok())
    return s;
  std::vector<Member> members;
  if (Status s = readDirectory(file, found, members); !s.ok())
    return s;
  for (Member &member : members) {
    if (member.name.ends_with(".npy"))
      member.name.resize(member.name.size() - 4);
    names += (names.empty() ? "" : ", ") + member.name;
  }
  Choice choice(spec, members);
  if (std::string missing = choice.missing(members); !missing.empty())
    return {MT_INVALID,
            found + ": expected array " + missing + ", found " + (names.empty() ? "none" : names)};
  uint64_t bytes = 0;
  for (const Member &member : members)
    bytes += choice.takes(member.name) ? member.size : 0;
  if (Status s = checkMemory(bytes, found + ": its arrays"); !s.ok())
    return s;
  if (Status s = readChosen(file, found, members, choice, !spec.wanted.empty(), table); !s.ok())
    return s;
  if (!table.fields.empty())
    return {};
  std::string wanted;
  for (const Wanted &entry : spec.wanted)
    wanted += (wanted.empty() ? "" : ", ") + entry.name;
  return {MT_INVALID, found + ": expected arrays of the model's names (" + wanted +
                          "), or x and y, or x=NAME and y=NAME, found " + (names.empty() ? "none" : names)};
}

extern const SourceKind npzSource = {
    .name = "npz",
    .form = "npz:FILE",
    .help = "arrays of the model's names, or x and y",
    .keys = "x=, y=, split=",
    .open = openNpz,
};

} // namespace mtrun
