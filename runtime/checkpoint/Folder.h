// SPDX-License-Identifier: Apache-2.0
//
// The folder into which a run writes checkpoints: its lock, its free bytes, and which checkpoints are kept.
#pragma once

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/Incarnation.h"

#include <string>

namespace mtrun {

class CheckpointFolder {
public:
  CheckpointFolder() = default;
  CheckpointFolder(const CheckpointFolder &) = delete;
  CheckpointFolder &operator=(const CheckpointFolder &) = delete;
  // Releases the lock, as does the end of the process. A folder without checkpoints gets empty again, unless keep() was
  // called.
  ~CheckpointFolder();

  // Creates the folder if necessary, locks it, and removes the folders of unfinished saves. MT_IO; MT_INVALID: another
  // run has locked it. `supervisor`: the name of the supervisor that started this process, or "". A process that the
  // same supervisor started before may still have the lock, for instance while it is stopped; claim() then keeps it
  // from writing.
  Status open(Disk &disk, const std::string &folder, const std::string &supervisor = "");
  // Makes this process the only one that writes to the folder. `sameRun`: it continues the run of the folder. MT_IO.
  Status claim(bool sameRun);
  // The run continues elsewhere although it has no checkpoint yet.
  void keep() { keeps_ = true; }
  const Incarnation &incarnation() const { return incarnation_; }
  // Entries that have the name of a checkpoint but are none: links, and folders with other files. Nothing removes them.
  const std::vector<std::string> &strangers() const { return strangers_; }
  // Checks that the file system has room for a save of `bytes` bytes of variables. MT_IO with both numbers.
  Status checkRoom(uint64_t bytes) const;
  // See writeCheckpoint(). MT_LOST: a later start of the run has claimed the folder.
  Status write(Manifest manifest, std::vector<SafeTensor> tensors) const;
  // See beginCheckpoint(), endCheckpoint() and abandonCheckpoint(). MT_LOST as for write().
  Status begin(int64_t step, const VariablesFile &file, std::string &place) const;
  Status end(Manifest manifest, const VariablesFile &file, const CheckTensor &check) const;
  void abandon(int64_t step) const { abandonCheckpoint(*disk_, descriptor_, step); }
  // Removes all checkpoints except the newest `keep`, the checkpoint of step `keptStep`, and the best, which has the
  // smallest (`largest`: the largest) value of the monitored metric in its manifest.
  void prune(int64_t keep, bool largest, const std::string &monitor, int64_t keptStep = -1) const;
  // Removes the checkpoints of steps after `step`. If a checkpoint is a link, only the link is removed; a folder with
  // other files is renamed.
  void removeAfter(int64_t step) const;
  // Renames a checkpoint that does not verify, so that the run can write its own checkpoint of this step. Returns the
  // new name, or "" on failure.
  std::string setAside(int64_t step) const;

  const std::string &path() const { return folder_; }

private:
  Status lock();
  Status stillOurs() const;
  void tidy();
  bool remove(int64_t step) const;

  Disk *disk_ = nullptr;
  std::string folder_;
  Incarnation incarnation_; // its run is "" before claim()
  bool keeps_ = false;
  std::vector<std::string> strangers_;
  int descriptor_ = -1, lock_ = -1; // the folder; the locked file, if the file system cannot lock folders
};

} // namespace mtrun
