// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/atomic_file.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mtrun {

static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Syncs a folder, so that the names in it survive a power cut. Returns 0, or errno.
static int syncFolder(const std::string &path) {
  int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return errno;
  int reason = fsync(folder) == 0 ? 0 : errno;
  close(folder);
  // some file systems cannot fsync a folder; a rename has no stronger guarantee there
  return reason == EINVAL ? 0 : reason;
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty())
    unlink(temporary_.c_str());
  if (descriptor_ >= 0)
    close(descriptor_);
}

Status AtomicFile::fail(const char *what, int errorNumber) { return ioError(what, path_, errorNumber); }

// Removes the temporary file `name` that a killed process left: a file of this user that no process has locked.
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

// Creates a file and locks it. Returns -1 with errno EEXIST if another process is writing a file of this name.
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
    // Another process may remove the file between open() and flock(); st_nlink is then 0, and the loop tries again.
    struct stat facts;
    if ((flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && fstat(descriptor, &facts) == 0 &&
        facts.st_nlink > 0)
      return descriptor;
    close(descriptor);
  }
  errno = EEXIST;
  return -1;
}

// The path by which linkat() names an unnamed file.
static std::string linkOf(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

// Creates and locks a file without a name. Returns -1 if the file system does not support O_TMPFILE or /proc is not
// mounted.
static int createUnnamed(const std::string &folder) {
  int descriptor = ::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
  struct stat facts;
  bool linkable = descriptor >= 0 && lstat(linkOf(descriptor).c_str(), &facts) == 0;
  if (descriptor >= 0 && (!linkable || flock(descriptor, LOCK_EX | LOCK_NB) != 0)) {
    close(descriptor);
    return -1;
  }
  return descriptor;
}

constexpr int writers = 100; // the maximum number of concurrent writers of one path

static std::string temporaryName(const std::string &path, int number) {
  return path + ".mtc-tmp-" + std::to_string(number);
}

static void removeLeftovers(const std::string &path) {
  struct stat facts;
  for (int number = 0; number < writers && lstat(temporaryName(path, number).c_str(), &facts) == 0; ++number)
    removeLeftover(temporaryName(path, number));
}

Status AtomicFile::open(const std::string &path) {
  path_ = path;
  struct stat existing;
  // A rename would replace a device or a pipe by a regular file, and fails for a folder.
  if (stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode))
    return S_ISDIR(existing.st_mode) ? fail("cannot write", EISDIR)
                                     : Status(MT_IO, "cannot write " + path + ": it is not a regular file");
  removeLeftovers(path);
  descriptor_ = createUnnamed(folderOf(path));
  return descriptor_ >= 0 ? Status() : createNamed();
}

Status AtomicFile::createNamed() {
  for (int number = 0; number < writers; ++number) {
    std::string name = temporaryName(path_, number);
    descriptor_ = create(name);
    if (descriptor_ >= 0) {
      temporary_ = name;
      return {};
    }
    if (errno != EEXIST)
      break;
  }
  return fail("cannot create", errno);
}

// Returns 0, or errno.
static int copyAll(int from, int to) {
  off_t offset = 0;
  ssize_t copied;
  do
    copied = sendfile(to, from, &offset, size_t(1) << 30);
  while (copied > 0 || (copied < 0 && errno == EINTR));
  return copied == 0 ? 0 : errno;
}

// Links the unnamed file as `path_` if no file has that name, else under a temporary name.
Status AtomicFile::giveName() {
  std::string unnamed = linkOf(descriptor_);
  auto link = [&](const std::string &name) {
    return linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  if (link(path_))
    return {};
  for (int number = 0; errno == EEXIST && number < writers; ++number) {
    std::string name = temporaryName(path_, number);
    if (link(name)) {
      temporary_ = name;
      return {};
    }
  }
  if (errno == EIO || errno == ENOSPC || errno == EDQUOT || errno == EEXIST)
    return fail("cannot write", errno);
  // The file system or a sandbox refuses to link unnamed files: copy the bytes into a file that has a name.
  int from = descriptor_;
  Status status = createNamed();
  if (status.ok())
    if (int reason = copyAll(from, descriptor_); reason != 0 || fsync(descriptor_) != 0)
      status = fail("cannot write", reason != 0 ? reason : errno);
  close(from);
  return status;
}

Status AtomicFile::write(const void *data, size_t size) {
  auto *bytes = static_cast<const char *>(data);
  while (size > 0) {
    ssize_t written = ::write(descriptor_, bytes, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0) // write() made no progress and set no errno: a retry could loop forever
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
  if (temporary_.empty())
    if (Status status = giveName(); !status.ok())
      return status;
  // Rename before close: close() drops the lock, and another process could then remove the file as a leftover.
  if (!temporary_.empty() && rename(temporary_.c_str(), path_.c_str()) != 0)
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
  if (reason == 0 || reason == EACCES) // EACCES: a folder with write and without read permission cannot be synced
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

Status writeAtomically(const std::string &path, std::string_view text) {
  AtomicFile file;
  if (Status s = file.open(path); !s.ok())
    return s;
  if (Status s = file.write(text.data(), text.size()); !s.ok())
    return s;
  return file.commit();
}

} // namespace mtrun
