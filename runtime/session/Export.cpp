// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Export.h"

#include "runtime/session/Archive.h"
#include "runtime/support/atomic_file.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <zlib.h>

namespace mtrun {

namespace fb = ::mt::plan;

namespace {

using Bytes = std::span<const std::byte>;

class ArchiveWriter {
public:
  explicit ArchiveWriter(const Session &session) : session_(session), archive_(session.plan()) {}

  // Writes the `part` of the archive to a file. A nonempty `comment` replaces the empty comment at the end of a zip
  // archive.
  Status write(const std::string &path, FileRange part, const std::string &comment) {
    AtomicFile file;
    Status status = file.open(path);
    size_t length = comment.size();
    std::byte last[2] = {static_cast<std::byte>(length), static_cast<std::byte>(length >> 8)};
    if (length)
      part.size -= sizeof last;
    archive_.forEach([&](const fb::ArchivePiece &piece, uint64_t at, Bytes bytes) {
      std::byte checksum[4];
      if (piece.kind() == fb::PieceKind::Crc32) {
        uint32_t value = checksumOf(piece.begin(), piece.size());
        for (int i = 0; i < 4; ++i)
          checksum[i] = static_cast<std::byte>(value >> 8 * i);
      }
      bytes = piece.kind() == fb::PieceKind::Crc32 ? Bytes(checksum) : bytesOf(piece, bytes);
      uint64_t first = std::max(at, part.begin), last = std::min(at + bytes.size(), part.begin + part.size);
      if (status.ok() && first < last)
        status = file.write(bytes.data() + (first - at), last - first);
    });
    if (status.ok() && length)
      status = file.write(last, sizeof last);
    if (status.ok() && length)
      status = file.write(comment.data(), length);
    if (status.ok())
      status = session_.health();
    return status.ok() ? file.commit() : std::move(status);
  }

private:
  Bytes bytesOf(const fb::ArchivePiece &piece, Bytes fixed) const {
    return piece.kind() == fb::PieceKind::Variable ? finishedValue(session_, piece.variable()) : fixed;
  }

  uint32_t checksumOf(uint64_t begin, uint64_t size) const {
    uLong checksum = crc32_z(0, nullptr, 0);
    uint64_t end = begin + size;
    archive_.forEach([&](const fb::ArchivePiece &piece, uint64_t at, Bytes fixed) {
      Bytes bytes = bytesOf(piece, fixed);
      uint64_t first = std::max(at, begin), last = std::min(at + bytes.size(), end);
      if (first < last)
        checksum = crc32_z(checksum, reinterpret_cast<const Bytef *>(bytes.data()) + (first - at), last - first);
    });
    return static_cast<uint32_t>(checksum);
  }

  const Session &session_;
  Archive archive_;
};

// Returns true if a step has run; before that an average has no values.
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

Status takeAverages(Session &session) {
  const auto *variables = session.plan().tables().variables();
  for (uint32_t i = 0; i < count(variables); ++i)
    if (variables->Get(i)->average() >= 0)
      if (Status status = session.setVariable(i, finishedValue(session, i)); !status.ok())
        return status;
  return {};
}

Status checkSave(const Plan &plan, const std::string &path) {
  const fb::Archive *archive = plan.tables().archive();
  std::string suffix = archive ? archive->suffix()->str() : kerasSuffix;
  bool tensors = path.ends_with(tensorsSuffix), model = path.ends_with(suffix),
       weights = suffix == kerasSuffix && path.ends_with(weightsSuffix);
  if (tensors)
    return {};
  if ((model || weights) && !archive)
    return {MT_INVALID, "expected a plan of a model of Keras 3, found one of MLIR text or of older JSON: compile the "
                        "model's .keras file, or write the variables alone as .safetensors"};
  if (model || (weights && Archive(plan).weights()))
    return {};
  bool keras = suffix == kerasSuffix;
  return {MT_INVALID, "expected a file name that ends with " +
                          (archive ? suffix + (keras ? " (the model), " : " (the model) or ") : "") +
                          (archive && keras ? weightsSuffix + " (its weights for Keras) or " : "") + tensorsSuffix +
                          " (the variables), found " + path};
}

// Returns the comment with the class names for a .keras file: its other members are laid out before the names are
// known.
static std::string commentOf(const Plan &plan, const std::vector<std::string> &classNames) {
  constexpr size_t longest = 0xffff;                 // the limit of a zip archive's comment
  bool own = count(plan.tables().class_names()) > 0; // the archive has the names
  if (classNames.empty() || own || plan.tables().archive()->suffix()->string_view() != kerasSuffix)
    return {};
  nlohmann::json json = {{classNamesKey, classNames}};
  std::string comment = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return comment.size() <= longest ? comment : std::string();
}

Status writeArchive(const Session &session, const std::string &path, const std::vector<std::string> &classNames) {
  const Plan &plan = session.plan();
  if (Status s = checkSave(plan, path); !s.ok())
    return s;
  if (path.ends_with(tensorsSuffix))
    return {MT_INVALID, "expected the name of a model's file, found " + path};
  Archive archive(plan);
  bool weights = !path.ends_with(plan.tables().archive()->suffix()->string_view());
  return ArchiveWriter(session).write(path, weights ? *archive.weights() : archive.whole(),
                                      weights ? "" : commentOf(plan, classNames));
}

} // namespace mtrun
