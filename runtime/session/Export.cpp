// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Export.h"

#include "runtime/abi/atomic_file.h"
#include "runtime/plan/Check.h"

#include <cstring>
#include <zlib.h>

namespace mtrun {

namespace fb = ::mt::plan;

namespace {

using Bytes = std::span<const std::byte>;

class ArchiveWriter {
public:
  explicit ArchiveWriter(const Session &session) : session_(session), archive_(*session.plan().tables().archive()) {}

  Status write(const std::string &path) {
    AtomicFile file;
    Status status = file.open(path);
    forEach([&](const fb::ArchivePiece &piece, uint64_t, Bytes bytes) {
      std::byte checksum[4];
      if (piece.kind() == fb::PieceKind::Crc32) {
        uint32_t value = checksumOf(piece.begin(), piece.size());
        for (int i = 0; i < 4; ++i)
          checksum[i] = static_cast<std::byte>(value >> 8 * i);
        bytes = checksum;
      }
      if (status.ok())
        status = file.write(bytes.data(), bytes.size());
    });
    if (status.ok())
      status = session_.health();
    return status.ok() ? file.commit() : std::move(status);
  }

private:
  // Each piece, its place in the file, its bytes (none of a checksum).
  template <typename Visit> void forEach(Visit visit) const {
    Bytes section = std::as_bytes(session_.plan().section(archive_.section()));
    uint64_t at = 0;
    for (uint32_t i = 0; i < count(archive_.pieces()); ++i) {
      const fb::ArchivePiece &piece = *archive_.pieces()->Get(i);
      Bytes bytes;
      if (piece.kind() == fb::PieceKind::Bytes) {
        bytes = section.first(piece.size());
        section = section.subspan(piece.size());
      } else if (piece.kind() == fb::PieceKind::Variable) {
        bytes = finishedValue(session_, piece.variable());
      }
      visit(piece, at, bytes);
      at += archivePieceBytes(session_.plan().tables(), piece);
    }
  }

  uint32_t checksumOf(uint64_t begin, uint64_t size) const {
    uLong checksum = crc32_z(0, nullptr, 0);
    uint64_t end = begin + size;
    forEach([&](const fb::ArchivePiece &, uint64_t at, Bytes bytes) {
      uint64_t first = std::max(at, begin), last = std::min(at + bytes.size(), end);
      if (first < last)
        checksum = crc32_z(checksum, reinterpret_cast<const Bytef *>(bytes.data()) + (first - at), last - first);
    });
    return static_cast<uint32_t>(checksum);
  }

  const Session &session_;
  const fb::Archive &archive_;
};

// Before the first step an average is of nothing.
bool hasBegun(const Session &session) {
  int32_t index = session.plan().tables().iteration();
  int32_t steps = 0;
  if (index >= 0)
    std::memcpy(&steps, session.variable(static_cast<uint32_t>(index)).data(),
                std::min(sizeof steps, session.variableSize(static_cast<uint32_t>(index))));
  return steps != 0;
}

} // namespace

Bytes finishedValue(const Session &session, uint32_t index) {
  int32_t average = session.plan().tables().variables()->Get(index)->average();
  return session.variable(average >= 0 && hasBegun(session) ? static_cast<uint32_t>(average) : index);
}

void takeAverages(Session &session) {
  const auto *variables = session.plan().tables().variables();
  for (uint32_t i = 0; i < count(variables); ++i)
    if (variables->Get(i)->average() >= 0)
      session.setVariable(i, finishedValue(session, i));
}

Status checkArchive(const Session &session, const std::string &path) {
  const fb::Archive *archive = session.plan().tables().archive();
  if (!archive)
    return {MT_INVALID, "expected a plan of a model of Keras 3, found one of MLIR text or of older JSON: compile the "
                        "model's .keras file, or "
                        "write the variables alone as .safetensors"};
  if (std::string suffix = archive->suffix()->str(); !path.ends_with(suffix))
    return {MT_INVALID, "expected a file name that ends with " + suffix + " or .safetensors, found " + path};
  return {};
}

Status writeArchive(const Session &session, const std::string &path) {
  if (Status s = checkArchive(session, path); !s.ok())
    return s;
  return ArchiveWriter(session).write(path);
}

} // namespace mtrun
