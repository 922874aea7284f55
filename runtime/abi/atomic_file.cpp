// SPDX-License-Identifier: Apache-2.0
#include "runtime/abi/atomic_file.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mtrun {

static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0)
    close(descriptor_);
  if (!temporary_.empty())
    unlink(temporary_.c_str());
}

Status AtomicFile::fail(const char *what, int errorNumber) { return ioError(what, path_, errorNumber); }

Status AtomicFile::open(const std::string &path) {
  path_ = path;
  struct stat existing;
  // A rename would replace a device or a pipe by a file, and it cannot replace a folder.
  if (stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode))
    return S_ISDIR(existing.st_mode) ? fail("cannot write", EISDIR)
                                     : Status(MT_IO, "cannot write " + path + ": it is not a regular file");
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string name = path + ".tmp-" + std::to_string(getpid()) + "-" + std::to_string(attempt);
    descriptor_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) {
      temporary_ = name;
      return {};
    }
    if (errno != EEXIST)
      return fail("cannot create", errno);
  }
  return fail("cannot create", EEXIST);
}

Status AtomicFile::write(const void *data, size_t size) {
  auto *bytes = static_cast<const char *>(data);
  while (size > 0) {
    ssize_t written = ::write(descriptor_, bytes, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return fail("cannot write", errno);
    bytes += written;
    size -= static_cast<size_t>(written);
  }
  return {};
}

Status AtomicFile::commit() {
  if (fsync(descriptor_) != 0)
    return fail("cannot write", errno);
  int descriptor = descriptor_;
  descriptor_ = -1;
  if (close(descriptor) != 0)
    return fail("cannot write", errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0)
    return fail("cannot write", errno);
  temporary_.clear();
  // The name itself lives in the folder: without this a power cut may lose it.
  int folder = ::open(folderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return fail("cannot sync the folder of", errno);
  int synced = fsync(folder), reason = errno;
  close(folder);
  // Some file systems have no fsync for folders; there the rename is as durable as it gets.
  return synced == 0 || reason == EINVAL ? Status() : fail("cannot sync the folder of", reason);
}

} // namespace mtrun
