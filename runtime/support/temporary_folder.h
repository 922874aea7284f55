// SPDX-License-Identifier: Apache-2.0
//
// A folder for files that another program reads or writes by their names. Its owner holds a lock on it: one that nobody
// locks is of a process that was killed, and the next one that makes such a folder removes it.
#pragma once

#include "runtime/support/status.h"

#include <string>

namespace mtrun {

class TemporaryFolder {
public:
  TemporaryFolder() = default;
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  // Removes the folder with all that is in it.
  ~TemporaryFolder();

  // Makes it in the system's folder for temporary files. MT_IO with the path and the system's reason.
  Status make();
  const std::string &path() const { return path_; }

private:
  std::string path_;
  int lock_ = -1;
};

} // namespace mtrun
