// SPDX-License-Identifier: Apache-2.0
//
// Checks the folders of a command's outputs before any computation, so that hours of training are not lost to a missing
// folder.
#pragma once

#include <string>
#include <vector>

namespace commandline {

class OutputFolders {
public:
  OutputFolders() = default;
  OutputFolders(const OutputFolders &) = delete;
  OutputFolders &operator=(const OutputFolders &) = delete;
  // Removes the folders that this object created if they are empty or have only the lock of a run that did not begin.
  ~OutputFolders();

  // Creates the folder of the file `path`. Returns "" on success, else the reason why the file cannot be written. ""
  // and "-" are not files.
  std::string prepareFile(const std::string &path);
  // Creates a folder for several files; returns as prepareFile().
  std::string prepareFolder(const std::string &path);
  // Creates a new folder: `path`, or PATH-2, PATH-3 ... if the name exists.
  std::string makeFresh(const std::string &path, std::string &folder);

private:
  std::vector<std::string> made_;
};

} // namespace commandline
