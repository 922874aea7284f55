// SPDX-License-Identifier: Apache-2.0
//
// Saves checkpoints while training continues: copies the variables between two steps, and hashes and writes the copy in
// a thread.
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
    bool largest = false;   // the largest value of the monitored metric is the best
    bool notFinite = false; // save variables with infinity or NaN, which is otherwise an error
  };

  // `folder` and `session` must outlive the writer. Allocates the copy and starts the thread.
  CheckpointWriter(const CheckpointFolder &folder, const Session &session, const Keep &keep);
  CheckpointWriter(const CheckpointWriter &) = delete;
  CheckpointWriter &operator=(const CheckpointWriter &) = delete;
  ~CheckpointWriter(); // waits for the current save

  bool idle();
  uint64_t bytes() const { return copy_.size(); } // size of all variables
  // Waits for the current save, copies the variables, and returns while the thread writes them. No step may be running.
  // `finite`: the caller has checked that the variables are finite. `keptStep`: the step of a checkpoint that is kept
  // in addition; -1: none.
  void save(Manifest manifest, bool finite = false, int64_t keptStep = -1);
  // Waits for the current save.
  void wait();
  // Returns the error of a save that failed since the last call.
  Status takeError();

private:
  void run();
  Status write();
  Status checkNumbers() const;
  template <typename Number> Status checkNumbersOf(const SafeTensor &tensor) const;

  const CheckpointFolder &folder_;
  const Session &session_;
  Keep keep_;
  std::vector<std::byte> copy_;
  std::vector<SafeTensor> tensors_; // their bytes are in copy_
  Manifest manifest_;               // used by the thread while busy_
  bool finite_ = false;             // used by the thread while busy_
  int64_t keptStep_ = -1;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false, end_ = false; // guarded by mutex_
  Status error_;                    // guarded by mutex_
  std::thread thread_;
};

} // namespace mtrun
