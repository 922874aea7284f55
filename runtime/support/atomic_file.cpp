// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/atomic_file.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mtrun {

static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A name lives in its folder: without this a power cut may lose it. 0, or the system's reason.
static int syncFolder(const std::string &path) {
  int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return errno;
  int reason = fsync(folder) == 0 ? 0 : errno;
  close(folder);
  return reason == EINVAL ? 0 : reason; // no fsync for folders there: the rename is as durable as it gets
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty())
    unlink(temporary_.c_str());
  if (descriptor_ >= 0)
    close(descriptor_);
}

Status AtomicFile::fail(const char *what, int errorNumber) { return ioError(what, path_, errorNumber); }

// Removes what a writer that is gone left under the name: a file of this user that nobody holds a lock on.
static bool removeLeftover(const std::string &name) {
  int descriptor = ::open(name.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0)
    return errno == ENOENT;
  struct stat facts;
  bool ours = fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid() &&
              flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  bool removed = ours && unlink(name.c_str()) == 0;
  close(descriptor);
  return removed;
}

// A new file with a lock on it. -1 and EEXIST: the name is another writer's.
static int create(const std::string &name) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor < 0) {
      if (errno != EEXIST)
        return -1;
      if (!removeLeftover(name))
        break;
      continue;
    }
    // Before the lock is there another writer may take the file for a leftover.
    struct stat facts;
    if ((flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && fstat(descriptor, &facts) == 0 &&
        facts.st_nlink > 0)
      return descriptor;
    close(descriptor);
  }
  errno = EEXIST;
  return -1;
}

Status AtomicFile::open(const std::string &path) {
  path_ = path;
  struct stat existing;
  // A rename would replace a device or a pipe by a file, and it cannot replace a folder.
  if (stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode))
    return S_ISDIR(existing.st_mode) ? fail("cannot write", EISDIR)
                                     : Status(MT_IO, "cannot write " + path + ": it is not a regular file");
  for (int other = 0; other < 100; ++other) { // so many may write to the path at once
    std::string name = path + ".mtc-tmp-" + std::to_string(other);
    descriptor_ = create(name);
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
    if (written <= 0) // nothing taken and no reason given: asking again could go on for ever
      return fail("cannot write", written < 0 ? errno : EIO);
    bytes += written;
    size -= static_cast<size_t>(written);
  }
  return {};
}

Status AtomicFile::writeAt(uint64_t offset, const void *data, size_t size) {
  auto *bytes = static_cast<const char *>(data);
  while (size > 0) {
    ssize_t written = pwrite(descriptor_, bytes, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return fail("cannot write", written < 0 ? errno : EIO);
    bytes += written;
    offset += static_cast<uint64_t>(written);
    size -= static_cast<size_t>(written);
  }
  return {};
}

Status AtomicFile::commit() {
  if (fsync(descriptor_) != 0)
    return fail("cannot write", errno);
  // Renamed before it is closed: without its lock it would be a leftover.
  if (rename(temporary_.c_str(), path_.c_str()) != 0)
    return fail("cannot write", errno);
  temporary_.clear();
  int descriptor = descriptor_;
  descriptor_ = -1;
  if (close(descriptor) != 0)
    return fail("cannot write", errno);
  int reason = syncFolder(folderOf(path_));
  return reason == 0 ? Status() : fail("cannot sync the folder of", reason);
}

int makeFolder(const std::string &path) {
  if (mkdir(path.c_str(), 0777) != 0)
    return errno;
  int reason = syncFolder(folderOf(path));
  if (reason == 0 || reason == EACCES) // a folder that may be written to and not read cannot be synced by us
    return 0;
  rmdir(path.c_str());
  return reason;
}

Status makeFolders(const std::string &path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    std::string folder = path.substr(0, slash);
    struct stat facts;
    if (int reason = makeFolder(folder); reason != 0) {
      if (stat(folder.c_str(), &facts) != 0)
        return ioError("cannot create", folder, reason);
      if (slash == std::string::npos && !S_ISDIR(facts.st_mode))
        return ioError("cannot create", folder, ENOTDIR);
    }
    if (slash == std::string::npos)
      return {};
  }
}

} // namespace mtrun
