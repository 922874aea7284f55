// SPDX-License-Identifier: Apache-2.0
//
// A folder in the host's memory (/dev/shm) for the variables of a run whose processes have lost one another: an
// ordinary checkpoint, from which the next start goes on. All processes of a host share it.
#pragma once

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/Incarnation.h"

#include <string>
#include <vector>

namespace mtrun {

// Returns the folder that is used unless the user names another: /dev/shm/mtrun-UID.
std::string defaultRescueFolder();

class RescueFolder {
public:
  RescueFolder() = default;
  RescueFolder(const RescueFolder &) = delete;
  RescueFolder &operator=(const RescueFolder &) = delete;
  ~RescueFolder();

  // Opens the run's part of `root`. Both are created, with access for this user only, unless `find` is true: then a
  // part that does not exist stays closed. MT_INVALID: a link, another user's folder, or one that others may enter.
  // MT_IO: no folder, or less than `bytes` bytes free.
  Status open(const std::string &root, const Incarnation &incarnation, uint64_t bytes, bool find);
  bool opened() const { return folder_ >= 0; }
  const std::string &path() const { return path_; }

  // Writes a checkpoint, unless the folder has one of this step or a later one, and removes earlier checkpoints. MT_IO;
  // MT_LOST: a later incarnation of the run uses the folder.
  Status write(const Manifest &manifest, std::vector<SafeTensor> tensors);
  // Removes the run's part.
  void remove();

private:
  Status openRoot(const std::string &root, bool find);
  Status succeed();
  Status lockWriter();
  void unlockWriter();

  Disk disk_;
  Incarnation incarnation_;
  std::string path_;
  int root_ = -1, folder_ = -1, writer_ = -1;
};

} // namespace mtrun
