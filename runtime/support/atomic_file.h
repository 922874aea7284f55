// SPDX-License-Identifier: Apache-2.0
//
// Writes a file that appears whole or not at all, and is on disk once it appears.
//
// The bytes go to a file in the path's folder that has no name yet (O_TMPFILE): a process that is killed leaves none.
// When all is written it gets its name. A link cannot replace a file: where there is one at the path, the new file is
// first linked as PATH.mtc-tmp-N and renamed by the next call. A kill between these two calls leaves that name; a file
// system without unnamed files (NFS) has it from the beginning. Its writer holds a lock on it: one that nobody locks is
// of a run that was killed, and the next writer of the path removes it.
#pragma once

#include "runtime/support/status.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace mtrun {

class AtomicFile {
public:
  AtomicFile() = default;
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;
  // Without a commit the new file is gone and an older file at the path stays as it was.
  ~AtomicFile();

  // Creates the file that will be at `path`. All calls: MT_IO with the path and the system's reason.
  Status open(const std::string &path);
  Status write(const void *data, size_t size);
  // The same at an offset of its own, which no write() goes to.
  Status writeAt(uint64_t offset, const void *data, size_t size);
  // fsync, the name, fsync of the folder.
  Status commit();

private:
  Status fail(const char *what, int errorNumber);
  Status createNamed();
  Status giveName();

  std::string path_;
  std::string temporary_; // the file's name until it has the path's; empty: it has none
  int descriptor_ = -1;
};

// Makes a folder, whose name is on disk when the call returns. 0, or the system's reason: EEXIST where it is there.
int makeFolder(const std::string &path);
// The same, with those above it, where they are not there. MT_IO.
Status makeFolders(const std::string &path);

} // namespace mtrun
