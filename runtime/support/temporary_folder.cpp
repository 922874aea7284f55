// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mtrun {

constexpr const char *prefix = "mtc-files-";

// Opens and locks a folder of this user. Returns -1 if it belongs to another user or its owner is alive. A file system
// without locks (NFS) is accepted for a new folder.
static int lockFolder(const std::string &path, bool isNew) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0)
    return -1;
  bool locked = flock(descriptor, LOCK_EX | LOCK_NB) == 0 || (isNew && errno != EWOULDBLOCK);
  struct stat facts;
  if (locked && fstat(descriptor, &facts) == 0 && facts.st_uid == geteuid() && facts.st_nlink > 0)
    return descriptor;
  close(descriptor);
  return -1;
}

static void removeLeftovers(const std::filesystem::path &base) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(base, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(prefix))
      continue;
    std::error_code ignored;
    if (int descriptor = lockFolder(entry->path(), false); descriptor >= 0) {
      std::filesystem::remove_all(entry->path(), ignored);
      close(descriptor);
    }
  }
}

Status TemporaryFolder::make() {
  std::error_code error;
  std::filesystem::path base = std::filesystem::temp_directory_path(error);
  if (error)
    base = "/tmp";
  removeLeftovers(base);
  // Another process may remove the folder between mkdtemp() and flock(), so several attempts are made.
  for (int attempt = 0; attempt < 10 && lock_ < 0; ++attempt) {
    path_ = (base / prefix).string() + "XXXXXX";
    if (!mkdtemp(path_.data())) {
      int reason = errno;
      std::string path = std::move(path_);
      path_.clear();
      return ioError("cannot create the folder", path, reason);
    }
    lock_ = lockFolder(path_, true);
  }
  return lock_ >= 0 ? Status() : ioError("cannot lock the folder", path_, EBUSY);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty())
    std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0)
    close(lock_);
}

} // namespace mtrun
