// SPDX-License-Identifier: Apache-2.0
//
// Saves while training goes on: a copy of the variables between two steps, then a thread that hashes and writes it.
#pragma once

#include "runtime/checkpoint/Folder.h"
#include "runtime/session/Session.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace mtrun {

class CheckpointWriter {
public:
  struct Keep {
    int64_t newest = 3;
    bool largest = false;   // the best has the largest value of the monitored metric
    bool notFinite = false; // save variables that hold infinity or NaN; otherwise that is an error
  };

  // `folder` and `session` outlive the writer. Allocates the copy and starts the thread.
  CheckpointWriter(const CheckpointFolder &folder, const Session &session, const Keep &keep);
  CheckpointWriter(const CheckpointWriter &) = delete;
  CheckpointWriter &operator=(const CheckpointWriter &) = delete;
  ~CheckpointWriter(); // after the save under way

  bool idle();
  uint64_t bytes() const { return copy_.size(); } // of all variables
  // Waits for the save under way, copies the variables, and returns while the thread writes them. Not while a step
  // runs. `finite`: they are, the caller has looked. `keptStep`: of a checkpoint that stays, too; -1: none.
  void save(Manifest manifest, bool finite = false, int64_t keptStep = -1);
  // Waits for the save under way.
  void wait();
  // The error of a save that failed since the last call.
  Status takeError();

private:
  void run();
  Status write();
  Status checkNumbers() const;

  const CheckpointFolder &folder_;
  const Session &session_;
  Keep keep_;
  std::vector<std::byte> copy_;
  std::vector<SafeTensor> tensors_; // in copy_
  Manifest manifest_;               // the thread's while busy_
  bool finite_ = false;             // so are these
  int64_t keptStep_ = -1;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false, end_ = false; // guarded
  Status error_;                    // guarded
  std::thread thread_;
};

} // namespace mtrun
