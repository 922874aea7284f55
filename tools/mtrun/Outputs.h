// SPDX-License-Identifier: Apache-2.0
//
// The files of a run: their names, and a check before any computation that they can be written.
#pragma once

#include "tools/commandline/OutputFolders.h"
#include "tools/mtrun/Run.h"

#include <string>

namespace mtrun_tool {

// Returns true if --checkpoint names a file per epoch and not a folder.
bool isEpochFile(const std::string &checkpoint);

class Outputs {
public:
  // Creates the folders of all named outputs. Throws if a file cannot be written.
  explicit Outputs(const Arguments &arguments);
  // Throws if the plan does not support a format. A run without --run, --save and --checkpoint gets a new folder.
  void begin(const Run &run);

  std::string folder, checkpoints, epochFile, save, json, csv; // "": not written

private:
  void nameFilesOf(const std::string &path);

  bool writes_ = true; // true in process 0
  commandline::OutputFolders folders_;
};

// Creates the folder of a file. Throws if the file cannot be written.
void prepareFile(commandline::OutputFolders &folders, const std::string &path);

} // namespace mtrun_tool
