// SPDX-License-Identifier: Apache-2.0
//
// A folder of checkpoints that one run writes to: its lock, its room, and which checkpoints stay.
#pragma once

#include "runtime/checkpoint/Checkpoint.h"

#include <string>

namespace mtrun {

class CheckpointFolder {
public:
  CheckpointFolder() = default;
  CheckpointFolder(const CheckpointFolder &) = delete;
  CheckpointFolder &operator=(const CheckpointFolder &) = delete;
  ~CheckpointFolder(); // gives the lock up; so does the end of the process, however it comes

  // Makes the folder if it is not there, locks it, removes what unfinished saves left. MT_IO; MT_INVALID: another run
  // has it.
  Status open(Disk &disk, const std::string &folder);
  // Names of the folder that look like ours and are not: links, and folders with other files in them. They stay.
  const std::vector<std::string> &strangers() const { return strangers_; }
  // Room for a save of that many bytes of variables, now. MT_IO with the numbers.
  Status checkRoom(uint64_t bytes) const;
  // As writeCheckpoint().
  Status write(Manifest manifest, std::vector<SafeTensor> tensors) const;
  // Removes all but the newest `keep`, the one of step `keptStep`, and, by the smallest value of the monitored metric
  // in their manifests, the best. Largest where `largest`.
  void prune(int64_t keep, bool largest, const std::string &monitor, int64_t keptStep = -1) const;
  // Removes those of later steps: of a link the link alone; a folder with other files in it is set aside.
  void removeAfter(int64_t step) const;
  // Gives a checkpoint that does not verify another name, so that the run can write its own; the new name, "" if that
  // failed.
  std::string setAside(int64_t step) const;

  const std::string &path() const { return folder_; }

private:
  Status lock();
  void tidy();
  bool remove(int64_t step) const;

  Disk *disk_ = nullptr;
  std::string folder_;
  std::vector<std::string> strangers_;
  int descriptor_ = -1, lock_ = -1; // of the folder, which holds the lock where its file system can; else of a file
};

} // namespace mtrun
