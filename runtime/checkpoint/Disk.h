// SPDX-License-Identifier: Apache-2.0
//
// The system calls that a save makes, as a class: a test stands in one whose n-th call fails or ends the process.
//
// Names are looked up in a folder that is open: whatever becomes of its path, a link put there included, nothing
// outside of it is touched.
#pragma once

#include "runtime/support/status.h"

#include <cstddef>
#include <span>
#include <string>
#include <sys/types.h>

namespace mtrun {

class Disk {
public:
  virtual ~Disk() = default;

  // As the system's: -1 and errno.
  virtual int open(int folder, const char *name, int flags, mode_t mode);
  virtual ssize_t write(int descriptor, const void *data, size_t size);
  virtual int fsync(int descriptor);
  virtual int close(int descriptor);
  virtual int mkdir(int folder, const char *name);
  virtual int rename(int folder, const char *from, const char *to);
  // Swaps two names in one step; EINVAL or ENOSYS where the file system cannot.
  virtual int exchange(int folder, const char *first, const char *second);
  virtual int unlink(int folder, const char *name);
  virtual int rmdir(int folder, const char *name);
  // Bytes that are free for us in the file system of `folder`; 0 and errno if that cannot be known.
  virtual uint64_t freeBytes(int folder);

  // The following are made of those above. `path` is for messages. All: MT_IO with the path and the system's reason.

  // A folder, which is no link; -1 and errno.
  int openFolder(int folder, const std::string &name);
  // A new file with these bytes, on disk when the call returns.
  Status writeFile(int folder, const char *name, const std::string &path,
                   std::span<const std::span<const std::byte>> parts);
  Status syncFolder(int folder, const std::string &path);
  // Whether a name is a folder, no link, with no other files in it than those of a checkpoint.
  bool isCheckpoint(int folder, const std::string &name);
  // Removes a folder and the files of a checkpoint in it. A link, and a folder with other files in it, stay. Whether
  // there is nothing of that name now.
  bool removeCheckpoint(int folder, const std::string &name);
};

} // namespace mtrun
