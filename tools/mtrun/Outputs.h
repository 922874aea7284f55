// SPDX-License-Identifier: Apache-2.0
//
// The files of a run: their names, and whether they can be written, before anything is computed.
#pragma once

#include "tools/commandline/OutputFolders.h"
#include "tools/mtrun/Run.h"

#include <string>

namespace mtrun_tool {

// Whether --checkpoint names a file an epoch, and not a folder.
bool isEpochFile(const std::string &checkpoint);

class Outputs {
public:
  // Makes the folders of all that is named, and throws where a file could not be written.
  explicit Outputs(const Arguments &arguments);
  // Throws where the plan has no such format. A run without --run, --save and --checkpoint gets a folder of its own.
  void begin(const Run &run);

  std::string folder, checkpoints, epochFile, save, json, csv; // "": none

private:
  void nameFilesOf(const std::string &path);

  bool writes_ = true; // the first of several processes does
  commandline::OutputFolders folders_;
};

// Makes the folder that a file is to be written in. Throws where it could not be written.
void prepareFile(commandline::OutputFolders &folders, const std::string &path);

} // namespace mtrun_tool
