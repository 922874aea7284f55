// SPDX-License-Identifier: Apache-2.0
//
// .npz files: a zip archive of .npy files, stored or deflated. Arrays that a model does not use are not read.
#include "runtime/data/Npy.h"
#include "runtime/data/SourceKind.h"
#include "runtime/data/gzip_buffer.h"
#include "runtime/device/AvailableMemory.h"
#include "runtime/support/zip_read.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <zlib.h>

namespace mtrun {

static Status inflateMember(std::span<const uint8_t> packed, const std::string &where, std::vector<uint8_t> &bytes) {
  constexpr size_t most = size_t{1} << 30; // zlib counts in 32 bits
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return {MT_NO_MEMORY, where + ": out of memory"};
  stream.next_in = const_cast<uint8_t *>(packed.data());
  stream.next_out = bytes.data();
  size_t in = 0, out = 0;
  int code = Z_OK;
  while (code == Z_OK) {
    stream.avail_in = static_cast<uInt>(std::min(most, packed.size() - in));
    stream.avail_out = static_cast<uInt>(std::min(most, bytes.size() - out));
    code = inflate(&stream, Z_NO_FLUSH);
    in = static_cast<size_t>(stream.next_in - packed.data());
    out = static_cast<size_t>(stream.next_out - bytes.data());
  }
  inflateEnd(&stream);
  if (code != Z_STREAM_END || out != bytes.size())
    return {MT_CORRUPT, where + ": expected " + std::to_string(bytes.size()) + " bytes of deflated data, found " +
                            std::to_string(out)};
  return {};
}

static Status readMember(std::span<const uint8_t> file, const ZipReader &zip, const ZipMember &member,
                         const std::string &where, std::vector<uint8_t> &bytes) {
  uint64_t begin = 0;
  if (Status s = zip.locate(member, begin); !s.ok())
    return std::move(s).in(where + ": ");
  if (member.method != 0 && member.method != 8)
    return {MT_INVALID,
            where + ": expected a stored or deflated member, found method " + std::to_string(member.method)};
  if (member.method == 0 ? member.size != member.packed : member.size / maxInflation > member.packed)
    return {MT_CORRUPT, where + ": expected a size that " + std::to_string(member.packed) + " bytes can hold, found " +
                            std::to_string(member.size)};
  std::span<const uint8_t> packed = file.subspan(begin, member.packed);
  if (member.method == 0) {
    bytes.assign(packed.begin(), packed.end());
    return {};
  }
  bytes.resize(member.size);
  return inflateMember(packed, where, bytes);
}

namespace {

// Chooses the members of an archive that a model uses, and their roles.
class Choice {
public:
  Choice(const DataSpec &spec, const std::vector<ZipMember> &members);
  // Returns the role that the user chose for a member; nullopt: the member is bound by its name.
  std::optional<mtrun_role> given(const std::string &name) const {
    return name == input_ ? std::optional(MTRUN_INPUT) : name == target_ ? std::optional(MTRUN_TARGET) : std::nullopt;
  }
  bool takes(const std::string &name) const { return given(name) || fits(name) || (!known() && !other(name)); }
  // Returns true for a member of the other split.
  bool other(const std::string &name) const { return !others_.empty() && name.ends_with(others_); }
  std::string missing(const std::vector<ZipMember> &members) const;

private:
  bool known() const { return !spec_.wanted.empty(); }
  bool fits(const std::string &name) const {
    return std::any_of(spec_.wanted.begin(), spec_.wanted.end(), [&](const Wanted &entry) {
      return entry.name == name || (entry.role == MTRUN_TARGET && entry.name == name + "_target");
    });
  }
  bool filled(mtrun_role role, const std::vector<ZipMember> &members) const {
    return std::any_of(members.begin(), members.end(), [&](const ZipMember &member) {
      return std::any_of(spec_.wanted.begin(), spec_.wanted.end(), [&](const Wanted &entry) {
        return entry.role == role && (entry.name == member.name || entry.name == member.name + "_target");
      });
    });
  }

  const DataSpec &spec_;
  std::string input_, target_, others_;
};

} // namespace

static bool has(const std::vector<ZipMember> &members, const std::string &name) {
  return std::any_of(members.begin(), members.end(), [&](const ZipMember &member) { return member.name == name; });
}

// Without keys, Keras' names x_train, y_train, x_test and y_test are used, or x and y, unless the model has members of
// its own names.
Choice::Choice(const DataSpec &spec, const std::vector<ZipMember> &members)
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

// Returns the names that the user named and the archive lacks.
std::string Choice::missing(const std::vector<ZipMember> &members) const {
  std::string names;
  for (const std::string &name : {spec_.input, spec_.target})
    if (!name.empty() && !has(members, name))
      names += (names.empty() ? "" : " and ") + name;
  return names;
}

static Status readArray(std::span<const uint8_t> file, const ZipReader &zip, const ZipMember &member,
                        const std::string &where, Field &field) {
  std::vector<uint8_t> bytes;
  if (Status s = readMember(file, zip, member, where, bytes); !s.ok())
    return s;
  size_t size = bytes.size();
  std::shared_ptr<const uint8_t> owner = share(std::move(bytes));
  return parseNpy({owner.get(), size}, owner, where, field);
}

// Reads the chosen members. An unsupported array is an error only if it was chosen by name.
static Status readChosen(std::span<const uint8_t> file, const ZipReader &zip, const std::string &opened,
                         const std::vector<ZipMember> &members, const Choice &choice, bool known, Table &table) {
  std::string left;
  for (const ZipMember &member : members) {
    if (!choice.takes(member.name)) {
      if (!choice.other(member.name))
        left += (left.empty() ? "" : ", ") + member.name;
      continue;
    }
    Field field;
    Status status = readArray(file, zip, member, opened + ": " + member.name, field);
    bool different = !table.fields.empty() && field.samples != table.fields[0].samples;
    if (!known && !choice.given(member.name) && (!status.ok() || different)) {
      table.notes.push_back(status.ok() ? opened + ": " + member.name + ": left out, of " +
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
    table.notes.push_back(opened + ": arrays that the model does not take: " + left +
                          (has(members, "sample_weight") && !choice.takes("sample_weight")
                               ? "; for weights of samples compile it with mtc compile --sample-weights"
                               : ""));
  return {};
}

static Status openNpz(const DataSpec &spec, Table &table) {
  std::vector<uint8_t> file;
  std::string opened, names;
  if (Status s = readData(spec.paths[0], file, opened); !s.ok())
    return s;
  ZipReader zip(file.size(), [&](uint64_t at, std::span<std::byte> bytes) {
    std::copy_n(std::as_bytes(std::span(file)).begin() + static_cast<ptrdiff_t>(at), bytes.size(), bytes.begin());
  });
  if (Status s = zip.open(); !s.ok())
    return std::move(s).in(opened + ": ");
  std::vector<ZipMember> members = zip.members(); // renamed below: ".npy" is removed
  for (ZipMember &member : members) {
    if (member.name.ends_with(".npy"))
      member.name.resize(member.name.size() - 4);
    names += (names.empty() ? "" : ", ") + member.name;
  }
  Choice choice(spec, members);
  if (std::string missing = choice.missing(members); !missing.empty())
    return {MT_INVALID, opened + ": expected array " + missing + ", found " + (names.empty() ? "none" : names)};
  uint64_t bytes = 0;
  for (const ZipMember &member : members)
    bytes += choice.takes(member.name) ? member.size : 0;
  if (Status s = checkMemory(bytes, opened + ": its arrays"); !s.ok())
    return s;
  if (Status s = readChosen(file, zip, opened, members, choice, !spec.wanted.empty(), table); !s.ok())
    return s;
  if (!table.fields.empty())
    return {};
  std::string wanted;
  for (const Wanted &entry : spec.wanted)
    wanted += (wanted.empty() ? "" : ", ") + entry.name;
  return {MT_INVALID, opened + ": expected arrays of the model's names (" + wanted +
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
