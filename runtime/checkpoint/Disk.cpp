// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Disk.h"

#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace mtrun {

int Disk::open(const char *path, int flags, mode_t mode) { return ::open(path, flags, mode); }
ssize_t Disk::write(int descriptor, const void *data, size_t size) { return ::write(descriptor, data, size); }
int Disk::fsync(int descriptor) { return ::fsync(descriptor); }
int Disk::close(int descriptor) { return ::close(descriptor); }
int Disk::mkdir(const char *path) { return ::mkdir(path, 0777); }
int Disk::rename(const char *from, const char *to) { return ::rename(from, to); }
int Disk::exchange(const char *first, const char *second) {
  return renameat2(AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE);
}
int Disk::unlink(const char *path) { return ::unlink(path); }
int Disk::rmdir(const char *path) { return ::rmdir(path); }

uint64_t Disk::freeBytes(const char *path) {
  struct statvfs facts;
  if (statvfs(path, &facts) != 0)
    return 0;
  errno = 0;
  uint64_t bytes;
  return __builtin_mul_overflow(uint64_t(facts.f_bavail), uint64_t(facts.f_frsize), &bytes) ? UINT64_MAX : bytes;
}

static Status writeAll(Disk &disk, int descriptor, const std::string &path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t written = disk.write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0) // nothing taken and no reason given: asking again could go on for ever
      return ioError("cannot write", path, written < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Status Disk::writeFile(const std::string &path, std::span<const std::span<const std::byte>> parts) {
  int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return ioError("cannot create", path, errno);
  Status status;
  for (size_t i = 0; i < parts.size() && status.ok(); ++i)
    status = writeAll(*this, descriptor, path, parts[i]);
  // After an error of fsync the pages may be gone: the file counts as lost, whatever a second call would say.
  if (status.ok() && fsync(descriptor) != 0)
    status = ioError("cannot write", path, errno);
  if (close(descriptor) != 0 && status.ok())
    status = ioError("cannot write", path, errno);
  return status;
}

Status Disk::syncFolder(const std::string &path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (descriptor < 0)
    return ioError("cannot sync", path, errno);
  int synced = fsync(descriptor), reason = errno;
  close(descriptor);
  // Some file systems have no fsync for folders; there the rename is as durable as it gets.
  return synced == 0 || reason == EINVAL ? Status() : ioError("cannot sync", path, reason);
}

void Disk::removeFolder(const std::string &path) {
  if (DIR *folder = opendir(path.c_str())) {
    while (dirent *entry = readdir(folder))
      if (std::string name = entry->d_name; name != "." && name != "..")
        unlink((path + "/" + name).c_str());
    closedir(folder);
  }
  rmdir(path.c_str());
}

} // namespace mtrun
