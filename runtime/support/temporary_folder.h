// SPDX-License-Identifier: Apache-2.0
//
// A temporary folder for files that another program reads or writes by name. The owner of a folder locks it. A folder
// without a lock belongs to a process that was killed; the next process that makes a temporary folder removes it.
#pragma once

#include "runtime/support/status.h"

#include <string>

namespace mtrun {

class TemporaryFolder {
public:
  TemporaryFolder() = default;
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  // Removes the folder with its contents.
  ~TemporaryFolder();

  // Creates the folder in the system's folder for temporary files. MT_IO with the path and the system's reason.
  Status make();
  const std::string &path() const { return path_; }

private:
  std::string path_;
  int lock_ = -1;
};

} // namespace mtrun
