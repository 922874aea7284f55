// SPDX-License-Identifier: Apache-2.0
//
// Writes a file that appears complete or not at all, and that is on disk once it appears.
// The bytes go into an unnamed file (O_TMPFILE) in the folder of the path, so that a killed process leaves nothing.
// commit() gives the file its name. linkat() cannot replace a file, so if the path exists, the new file is first linked
// as PATH.mtc-tmp-N and then renamed. A process that is killed between these two calls leaves PATH.mtc-tmp-N. File
// systems without unnamed files (NFS) use PATH.mtc-tmp-N from the beginning. The writer locks its file; the next writer
// of the path removes a PATH.mtc-tmp-N that has no lock.
#pragma once

#include "runtime/support/status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mtrun {

class AtomicFile {
public:
  AtomicFile() = default;
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;
  // Without commit() the new file disappears, and an older file at the path stays unchanged.
  ~AtomicFile();

  // Creates the file that commit() will put at `path`. All functions return MT_IO with the path and the system's
  // reason.
  Status open(const std::string &path);
  Status write(const void *data, size_t size);
  // Writes at an offset that write() does not reach.
  Status writeAt(uint64_t offset, const void *data, size_t size);
  // Syncs the file, gives it its name and syncs the folder.
  Status commit();

private:
  Status fail(const char *what, int errorNumber);
  Status createNamed();
  Status giveName();

  std::string path_;
  std::string temporary_; // the name of the file before it gets `path_`; empty: the file is unnamed
  int descriptor_ = -1;
};

// Creates a folder and syncs its parent. Returns 0 or errno; EEXIST if the folder exists.
int makeFolder(const std::string &path);
// Creates a folder and all missing parents. MT_IO.
Status makeFolders(const std::string &path);

// Writes or replaces a file of this text.
Status writeAtomically(const std::string &path, std::string_view text);

} // namespace mtrun
