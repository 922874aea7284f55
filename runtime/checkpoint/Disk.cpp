// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Disk.h"

#include "runtime/checkpoint/Manifest.h"

#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace mtrun {

int Disk::open(int folder, const char *name, int flags, mode_t mode) { return openat(folder, name, flags, mode); }
ssize_t Disk::write(int descriptor, const void *data, size_t size) { return ::write(descriptor, data, size); }
ssize_t Disk::writeAt(int descriptor, const void *data, size_t size, uint64_t offset) {
  return pwrite(descriptor, data, size, static_cast<off_t>(offset));
}
int Disk::reserve(int descriptor, uint64_t size) {
  auto length = static_cast<off_t>(size);
  if (fallocate(descriptor, 0, 0, length) == 0)
    return 0;
  return errno == EOPNOTSUPP || errno == ENOSYS ? ftruncate(descriptor, length) : -1;
}
int Disk::fsync(int descriptor) { return ::fsync(descriptor); }
int Disk::close(int descriptor) { return ::close(descriptor); }
int Disk::mkdir(int folder, const char *name) { return mkdirat(folder, name, 0777); }
int Disk::rename(int folder, const char *from, const char *to) { return renameat(folder, from, folder, to); }
int Disk::exchange(int folder, const char *first, const char *second) {
  return renameat2(folder, first, folder, second, RENAME_EXCHANGE);
}
int Disk::unlink(int folder, const char *name) { return unlinkat(folder, name, 0); }
int Disk::rmdir(int folder, const char *name) { return unlinkat(folder, name, AT_REMOVEDIR); }

uint64_t Disk::freeBytes(int folder) {
  struct statvfs facts;
  if (fstatvfs(folder, &facts) != 0)
    return 0;
  errno = 0;
  uint64_t bytes;
  return __builtin_mul_overflow(uint64_t(facts.f_bavail), uint64_t(facts.f_frsize), &bytes) ? UINT64_MAX : bytes;
}

// `write` writes the beginning of the bytes that it is given, and returns how many.
template <typename Write>
static Status writeAll(const std::string &path, std::span<const std::byte> bytes, Write write) {
  while (!bytes.empty()) {
    ssize_t written = write(bytes);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0) // write() made no progress and set no errno: a retry could loop forever
      return ioError("cannot write", path, written < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

int Disk::openFolder(int folder, const std::string &name) {
  return open(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

// After a failed fsync the kernel may have dropped the pages: the file is lost, even if a second fsync would succeed.
static Status syncAndClose(Disk &disk, int descriptor, const std::string &path, Status status) {
  if (status.ok() && disk.fsync(descriptor) != 0)
    status = ioError("cannot write", path, errno);
  if (disk.close(descriptor) != 0 && status.ok())
    status = ioError("cannot write", path, errno);
  return status;
}

Status Disk::writeFile(int folder, const char *name, const std::string &path,
                       std::span<const std::span<const std::byte>> parts) {
  int descriptor = open(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return ioError("cannot create", path, errno);
  Status status;
  auto write = [&](std::span<const std::byte> rest) { return this->write(descriptor, rest.data(), rest.size()); };
  for (size_t i = 0; i < parts.size() && status.ok(); ++i)
    status = writeAll(path, parts[i], write);
  return syncAndClose(*this, descriptor, path, std::move(status));
}

Status Disk::writePieces(int descriptor, const std::string &path, std::span<const Piece> pieces) {
  Status status;
  for (size_t i = 0; i < pieces.size() && status.ok(); ++i) {
    const Piece &piece = pieces[i];
    status = writeAll(path, piece.bytes, [&](std::span<const std::byte> rest) {
      return writeAt(descriptor, rest.data(), rest.size(), piece.offset + (piece.bytes.size() - rest.size()));
    });
  }
  return syncAndClose(*this, descriptor, path, std::move(status));
}

Status Disk::syncFolder(int folder, const std::string &path) {
  // Some file systems cannot fsync a folder; a rename has no stronger guarantee there.
  return fsync(folder) == 0 || errno == EINVAL ? Status() : ioError("cannot sync", path, errno);
}

bool Disk::isCheckpoint(int folder, const std::string &name) {
  int inside = openFolder(folder, name);
  DIR *listing = inside < 0 ? nullptr : fdopendir(inside);
  if (!listing) {
    if (inside >= 0)
      close(inside);
    return false;
  }
  bool all = true;
  while (dirent *entry = readdir(listing))
    if (std::string file = entry->d_name; file != "." && file != ".." && file != manifestFile && file != variablesFile)
      all = false;
  closedir(listing);
  return all;
}

bool Disk::removeCheckpoint(int folder, const std::string &name) {
  int inside = openFolder(folder, name);
  if (inside < 0)
    return errno == ENOENT;
  for (const char *file : {manifestFile, variablesFile})
    unlink(inside, file);
  close(inside);
  return rmdir(folder, name.c_str()) == 0;
}

} // namespace mtrun
