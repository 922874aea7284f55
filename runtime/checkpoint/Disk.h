// SPDX-License-Identifier: Apache-2.0
//
// The system calls that a save makes, as a class: a test stands in one whose n-th call fails or ends the process.
#pragma once

#include "runtime/abi/status.h"

#include <cstddef>
#include <span>
#include <string>
#include <sys/types.h>

namespace mtrun {

class Disk {
public:
  virtual ~Disk() = default;

  // As the system's: -1 and errno.
  virtual int open(const char *path, int flags, mode_t mode);
  virtual ssize_t write(int descriptor, const void *data, size_t size);
  virtual int fsync(int descriptor);
  virtual int close(int descriptor);
  virtual int mkdir(const char *path);
  virtual int rename(const char *from, const char *to);
  // Swaps two names in one step; EINVAL or ENOSYS where the file system cannot.
  virtual int exchange(const char *first, const char *second);
  virtual int unlink(const char *path);
  virtual int rmdir(const char *path);
  // Bytes that are free for us in the file system of `path`; 0 and errno if that cannot be known.
  virtual uint64_t freeBytes(const char *path);

  // The following are made of those above. All: MT_IO with the path and the system's reason.

  // A new file with these bytes, on disk when the call returns.
  Status writeFile(const std::string &path, std::span<const std::span<const std::byte>> parts);
  Status syncFolder(const std::string &path);
  // Removes a folder and the files in it, as far as it can: what is left has no name that a reader looks at.
  void removeFolder(const std::string &path);
};

} // namespace mtrun
