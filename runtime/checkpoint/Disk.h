// SPDX-License-Identifier: Apache-2.0
//
// The system calls of a save, as virtual functions: a test replaces them with functions whose n-th call fails or ends
// the process.
// Names are resolved relative to an open folder, so nothing outside the folder is changed, even if its path is replaced
// by a link meanwhile.
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

  // As the system calls: -1 and errno on failure.
  virtual int open(int folder, const char *name, int flags, mode_t mode);
  virtual ssize_t write(int descriptor, const void *data, size_t size);
  virtual ssize_t writeAt(int descriptor, const void *data, size_t size, uint64_t offset);
  // Gives a file its size, with room on the disk where the file system can reserve it.
  virtual int reserve(int descriptor, uint64_t size);
  virtual int fsync(int descriptor);
  virtual int close(int descriptor);
  virtual int mkdir(int folder, const char *name);
  virtual int rename(int folder, const char *from, const char *to);
  // Exchanges two names atomically; EINVAL or ENOSYS if the file system cannot.
  virtual int exchange(int folder, const char *first, const char *second);
  virtual int unlink(int folder, const char *name);
  virtual int rmdir(int folder, const char *name);
  // Returns the bytes that this user may still write to the file system of `folder`; 0 and errno on failure.
  virtual uint64_t freeBytes(int folder);

  // The functions below use the system calls above. `path` is for messages. MT_IO with the path and the system's
  // reason.

  // Opens a folder that is not a link; -1 and errno on failure.
  int openFolder(int folder, const std::string &name);
  // Creates a file with these bytes, which is on disk when the call returns.
  Status writeFile(int folder, const char *name, const std::string &path,
                   std::span<const std::span<const std::byte>> parts);
  // Writes bytes at places of an open file, which are on disk when the call returns, and closes it.
  struct Piece {
    uint64_t offset;
    std::span<const std::byte> bytes;
  };
  Status writePieces(int descriptor, const std::string &path, std::span<const Piece> pieces);
  Status syncFolder(int folder, const std::string &path);
  // Returns true if the name is a folder (not a link) that has only files of a checkpoint.
  bool isCheckpoint(int folder, const std::string &name);
  // Removes a folder that has only files of a checkpoint; links and other folders stay. Returns true if the name no
  // longer exists.
  bool removeCheckpoint(int folder, const std::string &name);
};

} // namespace mtrun
