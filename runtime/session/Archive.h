// SPDX-License-Identifier: Apache-2.0
//
// The plan's archive, the model in the format that it came from: which bytes of such a file are fixed, and where the
// variables' bytes lie in it.
#pragma once

#include "runtime/plan/Check.h"
#include "runtime/plan/Plan.h"
#include "runtime/support/safetensors.h"

#include <optional>

namespace mtrun {

struct FileRange {
  uint64_t begin = 0, size = 0;
};

class Archive {
public:
  // Of a plan that has one.
  explicit Archive(const Plan &plan) : plan_(plan), archive_(*plan.tables().archive()) {}

  // Calls visit(piece, its offset in the file, its fixed bytes: none but of PieceKind::Bytes).
  template <typename Visit> void forEach(Visit visit) const {
    std::span<const std::byte> section = std::as_bytes(plan_.section(archive_.section()));
    uint64_t at = 0;
    for (const mt::plan::ArchivePiece *piece : Each(archive_.pieces())) {
      size_t fixed = piece->kind() == mt::plan::PieceKind::Bytes ? piece->size() : 0;
      visit(*piece, at, section.first(fixed));
      section = section.subspan(fixed);
      at += archivePieceBytes(plan_.tables(), *piece);
    }
  }

  // All of the file; or, of Keras' archives, where the file of weights lies in it, which is one of its own as well.
  FileRange whole() const;
  std::optional<FileRange> weights() const;

  // The variables' bytes in a file, which may be one of weights alone: these are laid out as this plan's are, or
  // `tensors` stays empty. MT_CORRUPT: an archive's checksum is another. `where` begins messages.
  Status read(std::span<const std::byte> file, const std::string &where, std::vector<SafeTensor> &tensors) const;

private:
  const Plan &plan_;
  const mt::plan::Archive &archive_;
};

// The key under which the metadata of a file hold a list of the names of classes, in JSON.
inline constexpr const char *classNamesKey = "class_names";
// The names in such a list; none if `json` is no list of texts, as another program's may be.
std::vector<std::string> parseClassNames(std::string_view json);
// Those of a .keras file that was written here: of its comment, or its metadata.json; none if it has no list.
std::vector<std::string> classNamesOf(std::span<const std::byte> file);

// Whether these are the first bytes of a zip archive, of an HDF5 file.
bool isZip(std::span<const std::byte> file);
bool isHdf5(std::span<const std::byte> file);

} // namespace mtrun
