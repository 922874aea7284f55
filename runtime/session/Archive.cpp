// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Archive.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <zlib.h>

namespace mtrun {

namespace fb = ::mt::plan;

namespace {

constexpr std::string_view weightsMember = "model.weights.h5";
constexpr uint64_t narrowLimit = 0xffffffff;

using Bytes = std::span<const std::byte>;
using Read = std::function<void(uint64_t at, std::span<std::byte> bytes)>;

uint64_t number(Bytes bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i)
    value |= static_cast<uint64_t>(bytes[at + i]) << 8 * i;
  return value;
}

struct Member {
  FileRange range;
  uint32_t checksum;
};

// A member of a zip archive that is stored as it is, by the headers before the members; they say their sizes.
std::optional<Member> storedMember(std::string_view name, uint64_t total, const Read &read) {
  std::array<std::byte, 30> head;
  for (uint64_t at = 0; inside(at, head.size(), total);) {
    read(at, head);
    uint64_t size = number(head, 22, 4), nameBytes = number(head, 26, 2), extraBytes = number(head, 28, 2);
    bool stored = number(head, 8, 2) == 0 && (number(head, 6, 2) & 8) == 0;
    if (number(head, 0, 4) != 0x04034b50 || !stored || !inside(at + head.size(), nameBytes + extraBytes, total))
      return {};
    std::vector<std::byte> names(nameBytes + extraBytes);
    read(at + head.size(), names);
    if (size == narrowLimit) { // the extra field has it
      if (extraBytes < 12 || number(names, nameBytes, 2) != 1)
        return {};
      size = number(names, nameBytes + 4, 8);
    }
    at += head.size() + names.size();
    if (!inside(at, size, total))
      return {};
    if (std::string_view(reinterpret_cast<const char *>(names.data()), nameBytes) == name)
      return Member{{at, size}, static_cast<uint32_t>(number(head, 14, 4))};
    at += size;
  }
  return {};
}

bool beginsWith(Bytes file, std::string_view text) {
  return file.size() >= text.size() && memcmp(file.data(), text.data(), text.size()) == 0;
}

} // namespace

// The text behind the record that ends the archive.
static std::string_view commentOf(Bytes zip) {
  constexpr size_t kRecord = 22, kLongest = 0xffff;
  for (size_t size = 0; size <= kLongest && kRecord + size <= zip.size(); ++size) {
    Bytes end = zip.last(kRecord + size);
    if (number(end, 0, 4) == 0x06054b50 && number(end, 20, 2) == size)
      return {reinterpret_cast<const char *>(end.data()) + kRecord, size};
  }
  return {};
}

std::string classNamesOf(Bytes zip) {
  auto read = [&](uint64_t at, std::span<std::byte> bytes) { memcpy(bytes.data(), zip.data() + at, bytes.size()); };
  std::string_view metadata;
  if (std::optional<Member> member = storedMember("metadata.json", zip.size(), read))
    metadata = {reinterpret_cast<const char *>(zip.data()) + member->range.begin, member->range.size};
  for (std::string_view text : {commentOf(zip), metadata}) {
    nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    nlohmann::json names = json.is_object() ? json.value(kClassNames, nlohmann::json()) : nlohmann::json();
    if (names.is_array() && std::ranges::all_of(names, [](const auto &name) { return name.is_string(); }))
      return names.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); // which goes no deeper
  }
  return {};
}

bool isZip(Bytes file) { return beginsWith(file, "PK\3\4"); }
bool isHdf5(Bytes file) { return beginsWith(file, "\x89HDF\r\n\x1a\n"); }

FileRange Archive::whole() const {
  FileRange range;
  forEach([&](const fb::ArchivePiece &piece, uint64_t at, Bytes) {
    range.size = at + archivePieceBytes(plan_.tables(), piece);
  });
  return range;
}

std::optional<FileRange> Archive::weights() const {
  auto read = [&](uint64_t begin, std::span<std::byte> bytes) {
    std::fill(bytes.begin(), bytes.end(), std::byte(0)); // of checksums and variables
    forEach([&](const fb::ArchivePiece &, uint64_t at, Bytes fixed) {
      uint64_t first = std::max(at, begin), last = std::min(at + fixed.size(), begin + bytes.size());
      if (first < last)
        memcpy(bytes.data() + (first - begin), fixed.data() + (first - at), last - first);
    });
  };
  std::optional<Member> member = storedMember(weightsMember, whole().size, read);
  return member ? std::optional(member->range) : std::nullopt;
}

Status Archive::read(Bytes file, const std::string &where, std::vector<SafeTensor> &tensors) const {
  tensors.clear();
  std::optional<FileRange> mine = weights();
  if (isZip(file)) {
    auto read = [&](uint64_t at, std::span<std::byte> bytes) { memcpy(bytes.data(), file.data() + at, bytes.size()); };
    std::optional<Member> member = storedMember(weightsMember, file.size(), read);
    if (!member)
      return {};
    file = file.subspan(member->range.begin, member->range.size);
    if (crc32_z(0, reinterpret_cast<const Bytef *>(file.data()), file.size()) != member->checksum)
      return {MT_CORRUPT, where + ": " + std::string(weightsMember) + ": its bytes do not match their checksum"};
  }
  if (!mine || file.size() != mine->size)
    return {};
  bool same = true;
  const auto &variables = *plan_.tables().variables();
  std::vector<bool> seen(variables.size());
  forEach([&](const fb::ArchivePiece &piece, uint64_t at, Bytes fixed) {
    uint64_t size = archivePieceBytes(plan_.tables(), piece);
    if (!same || size == 0 || at < mine->begin || !inside(at - mine->begin, size, mine->size))
      return;
    Bytes found = file.subspan(at - mine->begin, size);
    if (piece.kind() != fb::PieceKind::Variable) {
      same = piece.kind() == fb::PieceKind::Bytes && std::ranges::equal(found, fixed);
      return;
    }
    if (seen[piece.variable()])
      return;
    seen[piece.variable()] = true;
    const fb::Variable &variable = *variables.Get(piece.variable());
    std::vector<int64_t> shape;
    for (int64_t extent : Each(variable.shape()))
      shape.push_back(extent);
    tensors.push_back({variable.name()->str(), static_cast<mt_dtype>(variable.dtype()), shape, found});
  });
  if (!same)
    tensors.clear();
  return {};
}

} // namespace mtrun
