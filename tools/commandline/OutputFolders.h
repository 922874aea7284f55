// SPDX-License-Identifier: Apache-2.0
//
// Where a command writes, looked at before it computes anything: hours of training must not end in a folder that was
// never there.
#pragma once

#include <string>
#include <vector>

namespace commandline {

class OutputFolders {
public:
  OutputFolders() = default;
  OutputFolders(const OutputFolders &) = delete;
  OutputFolders &operator=(const OutputFolders &) = delete;
  // The folders that were made and that hold nothing, or no more than the lock of a run that did not begin, go again.
  ~OutputFolders();

  // Makes the folder that `path` is to be written in. Empty on success, else why a file cannot be written there; "" and
  // "-" are no files.
  std::string prepareFile(const std::string &path);
  // The same of a folder that files are to be written in.
  std::string prepareFolder(const std::string &path);
  // Makes a folder that was not there: `path`, or PATH-2, PATH-3 ...
  std::string makeFresh(const std::string &path, std::string &folder);

private:
  std::vector<std::string> made_;
};

} // namespace commandline
