// SPDX-License-Identifier: Apache-2.0
//
// The archive of a plan is the model's file in its original format. This class knows which bytes of the file are fixed
// and which belong to variables.
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
  // The plan must have an archive.
  explicit Archive(const Plan &plan) : plan_(plan), archive_(*plan.tables().archive()) {}

  // Calls visit(piece, its offset in the file, its fixed bytes). Only pieces of kind Bytes have fixed bytes.
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

  // The range of the whole file; and for archives of Keras the range of the file of weights inside it.
  FileRange whole() const;
  std::optional<FileRange> weights() const;

  // Finds the variables' bytes in `file`, a whole archive or its file of weights. `tensors` stays empty if the file's
  // layout differs from that of this plan's archive. MT_CORRUPT: a checksum does not match. `where` begins messages.
  Status read(std::span<const std::byte> file, const std::string &where, std::vector<SafeTensor> &tensors) const;

private:
  const Plan &plan_;
  const mt::plan::Archive &archive_;
};

// The metadata key of a list of class names, in JSON.
inline constexpr const char *classNamesKey = "class_names";
// Parses a list of class names; empty if `json` is not a list of strings, for example from another program.
std::vector<std::string> parseClassNames(std::string_view json);
// Returns the class names from the comment or the metadata.json of a .keras file that MTC wrote; empty if there are
// none.
std::vector<std::string> classNamesOf(std::span<const std::byte> file);

// Return true if `file` begins as a zip archive or as an HDF5 file.
bool isZip(std::span<const std::byte> file);
bool isHdf5(std::span<const std::byte> file);

} // namespace mtrun
