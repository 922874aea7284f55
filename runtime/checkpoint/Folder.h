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
  // Room for a save of that many bytes of variables, now. MT_IO with the numbers.
  Status checkRoom(uint64_t bytes) const;
  // Removes all but the newest `keep` and, by the smallest value of the metric that their manifests hold, the best.
  // Largest where `largest`.
  void prune(int64_t keep, bool largest) const;
  // Removes those of later steps.
  void removeAfter(int64_t step) const;
  // Gives a checkpoint that does not verify another name, so that the run can write its own; the new name, "" if that
  // failed.
  std::string setAside(int64_t step) const;

  const std::string &path() const { return folder_; }

private:
  void remove(int64_t step) const;

  Disk *disk_ = nullptr;
  std::string folder_;
  int lock_ = -1;
};

} // namespace mtrun
