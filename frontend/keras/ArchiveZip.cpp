// SPDX-License-Identifier: Apache-2.0
//
// Runs in the child: reads the zip archive. Nothing is unpacked to disk, so member names cannot refer to other files;
// invalid names are rejected all the same.
#include "frontend/keras/ArchiveReader.h"

#include "frontend/Formats.h"

#include <zip.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <unistd.h>

namespace mtc::keras {
namespace {

constexpr zip_int64_t maxEntries = 10000;
// A member whose size grows by more than this factor, beyond a harmless size, is rejected as a zip bomb.
constexpr uint64_t maxGrowth = 100, harmlessBytes = uint64_t{1} << 26;

struct CloseArchive {
  void operator()(zip_t *archive) const { zip_discard(archive); }
};
struct CloseMember {
  void operator()(zip_file_t *member) const { zip_fclose(member); }
};

void checkName(const std::string &name) {
  bool up = name == ".." || name.starts_with("../") || name.ends_with("/..") || name.find("/../") != std::string::npos;
  if (name.empty() || name[0] == '/' || up || name.find('\\') != std::string::npos)
    throw ArchiveError("expected member names inside the archive, found '" + name + "'");
}

// Checks the directory of the archive: names, links and sizes.
void checkMembers(zip_t *archive) {
  zip_int64_t count = zip_get_num_entries(archive, 0);
  if (count > maxEntries)
    throw ArchiveError("expected at most " + std::to_string(maxEntries) + " members, found " + std::to_string(count));
  std::set<std::string> names;
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    if (zip_stat_index(archive, i, 0, &stat) != 0 || !(stat.valid & ZIP_STAT_NAME))
      throw ArchiveError("member " + std::to_string(i) + " cannot be read");
    checkName(stat.name);
    if (!names.insert(stat.name).second)
      throw ArchiveError("expected members of different names, found a second '" + std::string(stat.name) + "'");
    zip_uint8_t system = 0;
    zip_uint32_t attributes = 0;
    zip_file_get_external_attributes(archive, i, 0, &system, &attributes);
    if (system == ZIP_OPSYS_UNIX && (attributes >> 16 & 0170000) == 0120000)
      throw ArchiveError("expected files, found the link '" + std::string(stat.name) + "'");
  }
}

// To be called after checkMembers.
std::vector<std::string> namesOf(zip_t *archive) {
  std::vector<std::string> names;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive, 0); ++i)
    names.push_back(zip_get_name(archive, static_cast<zip_uint64_t>(i), 0));
  return names;
}

bool hasMember(zip_t *archive, const char *name) { return zip_name_locate(archive, name, 0) >= 0; }

std::vector<uint8_t> readMember(zip_t *archive, const char *name, uint64_t limit) {
  zip_stat_t stat;
  std::string prefix = "member " + std::string(name) + ": ";
  if (zip_stat(archive, name, 0, &stat) != 0 || !(stat.valid & ZIP_STAT_SIZE) || !(stat.valid & ZIP_STAT_COMP_SIZE))
    throw ArchiveError("expected a member " + std::string(name) + ", found none");
  if (stat.size > limit)
    throw ArchiveError(prefix + "expected at most " + std::to_string(limit) + " bytes, found " +
                       std::to_string(stat.size));
  if (stat.size > harmlessBytes && stat.size / maxGrowth > stat.comp_size)
    throw ArchiveError(prefix + "expected at most " + std::to_string(maxGrowth) + " bytes for a stored byte, found " +
                       std::to_string(stat.size) + " bytes in " + std::to_string(stat.comp_size));
  std::unique_ptr<zip_file_t, CloseMember> member(zip_fopen(archive, name, 0));
  if (!member)
    throw ArchiveError(prefix + zip_strerror(archive));
  std::vector<uint8_t> bytes(stat.size + 1);
  uint64_t size = 0;
  // Reads one byte more than the stated size, because the checksum is verified only after the last byte.
  while (size < bytes.size()) {
    zip_int64_t got = zip_fread(member.get(), bytes.data() + size, bytes.size() - size);
    if (got < 0)
      throw ArchiveError(prefix + zip_file_strerror(member.get()));
    if (got == 0)
      break;
    size += static_cast<uint64_t>(got);
  }
  if (size != stat.size)
    throw ArchiveError(prefix + "expected " + std::to_string(stat.size) + " bytes, found " +
                       (size < stat.size ? "fewer" : "more"));
  bytes.resize(size);
  return bytes;
}

} // namespace

void RecordWriter::writeAll(const void *bytes, uint64_t size) {
  const char *at = static_cast<const char *>(bytes);
  while (size) {
    ssize_t done = ::write(descriptor, at, size);
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      _exit(1); // the parent has closed the pipe
    at += done;
    size -= static_cast<uint64_t>(done);
  }
}

void RecordWriter::write(RecordKind kind, const std::string &name, const std::vector<int64_t> &shape, const void *bytes,
                         uint64_t size) {
  RecordHeader header = {kind, static_cast<uint32_t>(name.size()), static_cast<uint32_t>(shape.size()), 0, size};
  writeAll(&header, sizeof header);
  writeAll(name.data(), name.size());
  writeAll(shape.data(), shape.size() * sizeof(int64_t));
  writeAll(bytes, size);
}

void readZip(const std::string &path, RecordWriter &writer) {
  int code = 0;
  std::unique_ptr<zip_t, CloseArchive> archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    throw ArchiveError("not a zip archive that can be read: " + std::string(zip_error_strerror(&error)));
  }
  checkMembers(archive.get());
  if (std::string other = recognizeZip(namesOf(archive.get())); !other.empty())
    throw ArchiveError(other);
  for (const char *name : {"metadata.json", "config.json"}) {
    std::vector<uint8_t> text = readMember(archive.get(), name, maxConfigBytes);
    writer.write(RecordKind::Text, name, {}, text.data(), text.size());
  }
  int size = 0;
  if (const char *comment = zip_get_archive_comment(archive.get(), &size, ZIP_FL_ENC_RAW); comment && size > 0)
    writer.write(RecordKind::Text, "comment", {}, comment, static_cast<uint64_t>(size));
  if (hasMember(archive.get(), "model.weights.h5"))
    return readWeights(readMember(archive.get(), "model.weights.h5", maxWeightBytes), writer);
  for (const char *other : {"model.weights.npz", "model.weights.json"})
    if (hasMember(archive.get(), other))
      throw ArchiveError("expected weights in model.weights.h5, found " + std::string(other) +
                         ": save the model again with model.save(\"model.keras\")");
  throw ArchiveError("expected a member model.weights.h5, found none");
}

} // namespace mtc::keras
