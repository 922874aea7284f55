// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Archive.h"
#include "runtime/support/zip_read.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <zlib.h>

namespace mtrun {

namespace fb = ::mt::plan;

namespace {

constexpr std::string_view weightsMember = "model.weights.h5";

using Bytes = std::span<const std::byte>;

struct Member {
  FileRange range;
  uint32_t checksum;
};

// Returns a member that is stored without compression; nullopt if the archive is invalid or has no such member.
std::optional<Member> storedMember(std::string_view name, const ZipReader &zip) {
  const ZipMember *member = zip.find(name);
  uint64_t begin = 0;
  if (!member || member->method != 0 || member->packed != member->size || !zip.locate(*member, begin).ok())
    return {};
  return Member{{begin, member->size}, member->checksum};
}

ZipReader readerOf(Bytes file) {
  return {file.size(), [file](uint64_t at, std::span<std::byte> bytes) {
            std::copy_n(file.begin() + static_cast<ptrdiff_t>(at), bytes.size(), bytes.begin());
          }};
}

bool beginsWith(Bytes file, std::string_view text) {
  return file.size() >= text.size() && memcmp(file.data(), text.data(), text.size()) == 0;
}

nlohmann::json parseJson(std::string_view text) {
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

// Returns the elements of a list of strings; empty if `list` is anything else.
std::vector<std::string> textsOf(const nlohmann::json &list) {
  bool texts = list.is_array() && std::ranges::all_of(list, [](const auto &name) { return name.is_string(); });
  return texts ? list.get<std::vector<std::string>>() : std::vector<std::string>();
}

} // namespace

std::vector<std::string> parseClassNames(std::string_view json) { return textsOf(parseJson(json)); }

std::vector<std::string> classNamesOf(Bytes file) {
  ZipReader zip = readerOf(file);
  if (!zip.open().ok())
    return {};
  std::string_view metadata;
  if (std::optional<Member> member = storedMember("metadata.json", zip))
    metadata = {reinterpret_cast<const char *>(file.data()) + member->range.begin, member->range.size};
  for (std::string_view text : {std::string_view(zip.comment()), metadata})
    if (nlohmann::json json = parseJson(text); json.is_object() && json.contains(classNamesKey))
      return textsOf(json[classNamesKey]);
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
    std::fill(bytes.begin(), bytes.end(), std::byte(0)); // checksums and variables
    forEach([&](const fb::ArchivePiece &, uint64_t at, Bytes fixed) {
      uint64_t first = std::max(at, begin), last = std::min(at + fixed.size(), begin + bytes.size());
      if (first < last)
        memcpy(bytes.data() + (first - begin), fixed.data() + (first - at), last - first);
    });
  };
  ZipReader zip(whole().size, read);
  std::optional<Member> member = zip.open().ok() ? storedMember(weightsMember, zip) : std::nullopt;
  return member ? std::optional(member->range) : std::nullopt;
}

Status Archive::read(Bytes file, const std::string &where, std::vector<SafeTensor> &tensors) const {
  tensors.clear();
  std::optional<FileRange> mine = weights();
  if (isZip(file)) {
    ZipReader zip = readerOf(file);
    std::optional<Member> member = zip.open().ok() ? storedMember(weightsMember, zip) : std::nullopt;
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
    Bytes bytes = file.subspan(at - mine->begin, size);
    if (piece.kind() != fb::PieceKind::Variable) {
      same = piece.kind() == fb::PieceKind::Bytes && std::ranges::equal(bytes, fixed);
      return;
    }
    if (seen[piece.variable()])
      return;
    seen[piece.variable()] = true;
    const fb::Variable &variable = *variables.Get(piece.variable());
    std::vector<int64_t> shape;
    for (int64_t extent : Each(variable.shape()))
      shape.push_back(extent);
    tensors.push_back({variable.name()->str(), static_cast<mt_dtype>(variable.dtype()), shape, bytes});
  });
  if (!same)
    tensors.clear();
  return {};
}

} // namespace mtrun
