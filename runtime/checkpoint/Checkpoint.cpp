// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mtrun {

static Hash128 hashOf(std::span<const std::byte> bytes) {
  return hash128({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
}

static Status writeManifestFile(Disk &disk, int folder, const std::string &path, const Manifest &manifest) {
  std::string text = writeManifest(manifest);
  std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  if (Status s = disk.writeFile(folder, manifestFile, path + "/" + manifestFile, {&bytes, 1}); !s.ok())
    return s;
  return disk.syncFolder(folder, path);
}

static Status writeFiles(Disk &disk, int folder, const std::string &path, Manifest &manifest,
                         std::vector<SafeTensor> tensors) {
  std::string header = safetensorsHeader(tensors);
  std::vector<std::span<const std::byte>> parts = {std::as_bytes(std::span(header))};
  manifest.fileSize = header.size();
  manifest.header = hashOf(parts[0]);
  manifest.tensors.clear();
  for (const SafeTensor &tensor : tensors) {
    parts.push_back(tensor.bytes);
    manifest.fileSize += tensor.bytes.size();
    manifest.tensors.push_back({tensor.name, tensor.dtype, tensor.shape, hashOf(tensor.bytes)});
  }
  if (Status s = disk.writeFile(folder, variablesFile, path + "/" + variablesFile, parts); !s.ok())
    return s;
  return writeManifestFile(disk, folder, path, manifest);
}

// Creates and opens the temporary folder.
static Status makeTemporary(Disk &disk, int folder, const std::string &name, const std::string &path, int &inside) {
  if (disk.mkdir(folder, name.c_str()) != 0) {
    if (errno != EEXIST)
      return ioError("cannot create", path, errno);
    disk.removeCheckpoint(folder, name); // left by a failed save that could not clean up
    if (disk.mkdir(folder, name.c_str()) != 0)
      return ioError("cannot create", path, errno);
  }
  inside = disk.openFolder(folder, name);
  return inside < 0 ? ioError("cannot create", path, errno) : Status();
}

// Renames the finished folder. An older checkpoint of that name gets the temporary name.
static Status rename(Disk &disk, int folder, const std::string &temporary, const std::string &name,
                     const std::string &path) {
  if (disk.rename(folder, temporary.c_str(), name.c_str()) == 0)
    return {};
  if (errno != ENOTEMPTY && errno != EEXIST)
    return ioError("cannot write", path, errno);
  if (disk.exchange(folder, temporary.c_str(), name.c_str()) == 0)
    return {};
  if (errno != EINVAL && errno != ENOSYS)
    return ioError("cannot write", path, errno);
  // The file system cannot exchange two names, so two renames are needed. Both checkpoints are complete at any time; if
  // the process ends between the calls, open() renames the old checkpoint back.
  std::string aside = temporary + "-old";
  if (disk.rename(folder, name.c_str(), aside.c_str()) != 0 ||
      disk.rename(folder, temporary.c_str(), name.c_str()) != 0)
    return ioError("cannot write", path, errno);
  disk.removeCheckpoint(folder, aside);
  return {};
}

static std::string temporaryName(int64_t step) {
  return temporaryPrefix + checkpointName(step) + "-" + std::to_string(getpid());
}

// Names the checkpoint of which `status` says whether the temporary folder has it, or removes the folder.
static Status nameCheckpoint(Disk &disk, int folder, const std::string &path, int64_t step, Status status,
                             const std::function<Status()> &mayName) {
  std::string name = checkpointName(step), temporary = temporaryName(step);
  if (status.ok() && mayName)
    status = mayName();
  if (status.ok())
    status = rename(disk, folder, temporary, name, path + "/" + name);
  if (status.ok())
    status = disk.syncFolder(folder, path);
  disk.removeCheckpoint(folder, temporary); // the failed save, or the older checkpoint after the exchange
  return status;
}

Status writeCheckpoint(Disk &disk, int folder, const std::string &path, Manifest manifest,
                       std::vector<SafeTensor> tensors, const std::function<Status()> &mayName) {
  int64_t step = manifest.state.step;
  std::string name = temporaryName(step), place = path + "/" + name;
  int inside = -1;
  Status status = makeTemporary(disk, folder, name, place, inside);
  if (status.ok())
    status = writeFiles(disk, inside, place, manifest, std::move(tensors));
  if (inside >= 0)
    disk.close(inside);
  return nameCheckpoint(disk, folder, path, step, std::move(status), mayName);
}

VariablesFile::VariablesFile(std::vector<SafeTensor> list) : tensors(std::move(list)) {
  header = safetensorsHeader(tensors);
  size = header.size();
  for (const SafeTensor &tensor : tensors) {
    offsets.push_back(size);
    size += bytesOf(tensor);
  }
}

Status beginCheckpoint(Disk &disk, int folder, const std::string &path, int64_t step, const VariablesFile &file,
                       std::string &place) {
  std::string name = temporaryName(step);
  place = path + "/" + name + "/" + variablesFile;
  int inside = -1, descriptor = -1;
  Status status = makeTemporary(disk, folder, name, path + "/" + name, inside);
  if (status.ok())
    descriptor = disk.open(inside, variablesFile, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (status.ok() && descriptor < 0)
    status = ioError("cannot create", place, errno);
  if (status.ok() && disk.reserve(descriptor, file.size) != 0)
    status = ioError("cannot write", place, errno);
  if (status.ok()) {
    Disk::Piece header = {0, std::as_bytes(std::span(file.header))};
    status = disk.writePieces(descriptor, place, {&header, 1});
  } else if (descriptor >= 0) {
    disk.close(descriptor);
  }
  if (inside >= 0)
    disk.close(inside);
  if (!status.ok())
    abandonCheckpoint(disk, folder, step);
  return status;
}

void abandonCheckpoint(Disk &disk, int folder, int64_t step) { disk.removeCheckpoint(folder, temporaryName(step)); }

Status writePieces(Disk &disk, const std::string &place, uint64_t size, std::span<const Disk::Piece> pieces) {
  int descriptor = disk.open(AT_FDCWD, place.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0);
  if (descriptor < 0)
    return ioError("cannot open", place, errno);
  struct stat facts;
  if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode) || static_cast<uint64_t>(facts.st_size) != size) {
    disk.close(descriptor);
    return {MT_IO, place + ": expected the file of " + std::to_string(size) + " bytes of process 0, found another"};
  }
  return disk.writePieces(descriptor, place, pieces);
}

// Reads what other processes have written. The pieces of a tensor need not be in the memory of this process.
static Status readBack(int folder, const std::string &place, uint64_t offset, std::span<std::byte> bytes) {
  int descriptor = openat(folder, variablesFile, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  Status status = descriptor < 0 ? ioError("cannot open", place, errno) : Status();
  while (status.ok() && !bytes.empty()) {
    ssize_t count = pread(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      status = ioError("cannot read", place, count < 0 ? errno : EIO);
    else
      bytes = bytes.subspan(static_cast<size_t>(count)), offset += static_cast<uint64_t>(count);
  }
  if (descriptor >= 0)
    close(descriptor);
  return status;
}

static Status completeFiles(Disk &disk, int inside, const std::string &path, Manifest &manifest,
                            const VariablesFile &file, const CheckTensor &check) {
  std::string place = path + "/" + variablesFile;
  std::vector<Disk::Piece> own;
  for (size_t i = 0; i < file.tensors.size(); ++i)
    if (!file.tensors[i].bytes.empty())
      own.push_back({file.offsets[i], file.tensors[i].bytes});
  int descriptor = disk.open(inside, variablesFile, O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0);
  if (descriptor < 0)
    return ioError("cannot open", place, errno);
  if (Status s = disk.writePieces(descriptor, place, own); !s.ok())
    return s;
  manifest.fileSize = file.size;
  manifest.header = hashOf(std::as_bytes(std::span(file.header)));
  manifest.tensors.clear();
  std::vector<std::byte> room;
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    const SafeTensor &tensor = file.tensors[i];
    std::span<const std::byte> bytes = tensor.bytes;
    if (bytes.empty()) {
      room.resize(bytesOf(tensor));
      if (Status s = readBack(inside, place, file.offsets[i], room); !s.ok())
        return s;
      bytes = room;
      if (Status s = check(i, bytes); !s.ok())
        return s;
    }
    manifest.tensors.push_back({tensor.name, tensor.dtype, tensor.shape, hashOf(bytes)});
  }
  return writeManifestFile(disk, inside, path, manifest);
}

Status endCheckpoint(Disk &disk, int folder, const std::string &path, Manifest manifest, const VariablesFile &file,
                     const CheckTensor &check, const std::function<Status()> &mayName) {
  int64_t step = manifest.state.step;
  std::string name = temporaryName(step), place = path + "/" + name;
  int inside = disk.openFolder(folder, name);
  Status status =
      inside < 0 ? ioError("cannot open", place, errno) : completeFiles(disk, inside, place, manifest, file, check);
  if (inside >= 0)
    disk.close(inside);
  return nameCheckpoint(disk, folder, path, step, std::move(status), mayName);
}

Status readManifest(const std::string &path, Manifest &manifest) {
  std::string where = path + "/" + manifestFile;
  std::vector<std::byte> bytes;
  if (Status s = readWholeFile(where, bytes); !s.ok())
    return s;
  return parseManifest({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, where, manifest);
}

static Status verify(const Checkpoint &checkpoint, const std::string &where) {
  const Manifest &manifest = checkpoint.manifest;
  if (checkpoint.file.size() != manifest.fileSize)
    return {MT_CORRUPT, where + ": expected " + std::to_string(manifest.fileSize) + " bytes, found " +
                            std::to_string(checkpoint.file.size())};
  uint64_t data = 0;
  for (const SafeTensor &tensor : checkpoint.tensors)
    data += tensor.bytes.size();
  auto differs = [&](const std::string &what, const Hash128 &expected, const Hash128 &found) {
    return Status(MT_CORRUPT,
                  where + ": " + what + ": expected hash " + hashText(expected) + ", found " + hashText(found));
  };
  Hash128 header = hashOf(std::span(checkpoint.file).first(checkpoint.file.size() - data));
  if (header != manifest.header)
    return differs("the header", manifest.header, header);
  if (checkpoint.tensors.size() != manifest.tensors.size())
    return {MT_CORRUPT, where + ": expected " + std::to_string(manifest.tensors.size()) + " tensors, found " +
                            std::to_string(checkpoint.tensors.size())};
  for (size_t i = 0; i < manifest.tensors.size(); ++i) {
    const TensorRecord &record = manifest.tensors[i];
    const SafeTensor &tensor = checkpoint.tensors[i];
    if (tensor.name != record.name || tensor.dtype != record.dtype || tensor.shape != record.shape)
      return {MT_CORRUPT, where + ": expected tensor \"" + record.name + "\", found \"" + tensor.name +
                              "\", or another type or shape"};
    if (Hash128 hash = hashOf(tensor.bytes); hash != record.hash)
      return differs("tensor \"" + record.name + "\"", record.hash, hash);
  }
  return {};
}

// The size is checked first, so that a truncated file is reported as truncated and not as a bad header. Tensors of zero
// bytes may be in any order in the file.
static Status parseVariables(const std::string &where, Checkpoint &checkpoint) {
  if (checkpoint.file.size() == checkpoint.manifest.fileSize)
    if (Status s = parseSafetensors(checkpoint.file, where, checkpoint.tensors); !s.ok())
      return s;
  return verify(checkpoint, where);
}

Status readCheckpoint(const std::string &path, Checkpoint &checkpoint) {
  checkpoint = {};
  checkpoint.path = path;
  if (Status s = readManifest(path, checkpoint.manifest); !s.ok())
    return s;
  std::string where = path + "/" + variablesFile;
  if (Status s = readWholeFile(where, checkpoint.file); !s.ok())
    return s;
  return parseVariables(where, checkpoint);
}

Status parseCheckpoint(const std::string &path, const std::string &manifest, std::vector<std::byte> file,
                       Checkpoint &checkpoint) {
  checkpoint = {};
  checkpoint.path = path;
  if (Status s = parseManifest(manifest, path + "/" + manifestFile, checkpoint.manifest); !s.ok())
    return s;
  checkpoint.file = std::move(file);
  return parseVariables(path + "/" + variablesFile, checkpoint);
}

std::string checkpointName(int64_t step) {
  char text[40];
  snprintf(text, sizeof text, "step-%012lld", static_cast<long long>(step));
  return text;
}

std::vector<int64_t> checkpointSteps(const std::string &folder) {
  std::vector<int64_t> steps;
  if (DIR *listing = opendir(folder.c_str())) {
    while (dirent *entry = readdir(listing)) {
      std::string name = entry->d_name;
      int64_t step = -1;
      if (name.starts_with("step-"))
        std::from_chars(name.data() + 5, name.data() + name.size(), step);
      if (step >= 0 && name == checkpointName(step))
        steps.push_back(step);
    }
    closedir(listing);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

bool findNewest(const std::string &folder, Checkpoint &checkpoint, std::vector<std::string> &skipped) {
  for (int64_t step : checkpointSteps(folder)) {
    std::string path = folder + "/" + checkpointName(step);
    Status status = readCheckpoint(path, checkpoint);
    if (status.ok())
      return true;
    skipped.push_back("skipped " + path + ": " + status.message());
  }
  return false;
}

} // namespace mtrun
