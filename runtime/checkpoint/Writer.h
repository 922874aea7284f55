// SPDX-License-Identifier: Apache-2.0
//
// Saves checkpoints while training continues: copies the variables between two steps, and hashes and writes the copy in
// a thread. If the processes of a session divide the optimizer's variables and have the folder in common, each process
// writes its parts itself, between the two steps, into the file that process 0 has made. The thread in process 0 then
// writes the other variables, and reads the parts back for the hashes and to compare them with what was sent.
#pragma once

#include "runtime/checkpoint/Folder.h"
#include "runtime/session/Session.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace mtrun {

// The file of a session's variables where each process writes a part of it.
class DividedFile {
public:
  explicit DividedFile(const Session &session);
  // Writes the parts of this process. `hashes` receives a hash of each divided variable's part, in the file's order.
  // MT_IO.
  Status writeParts(Disk &disk, const std::string &place, std::string &hashes) const;
  const VariablesFile &file() const { return file_; }
  // Sets the bytes of a tensor that process 0 writes.
  void setBytes(size_t tensor, std::span<const std::byte> bytes) { file_.tensors[tensor].bytes = bytes; }
  // Returns the plan's variable of a tensor of the file.
  uint32_t variableOf(size_t tensor) const { return variables_[tensor]; }

private:
  const Session &session_;
  VariablesFile file_;
  std::vector<uint32_t> variables_; // by tensor
};

class CheckpointWriter {
public:
  struct Keep {
    int64_t newest = 3;
    bool largest = false;   // the largest value of the monitored metric is the best
    bool notFinite = false; // save variables with infinity or NaN, which is otherwise an error
  };

  // `folder` and `session` must outlive the writer. Allocates the copy and starts the thread. `together`: every process
  // writes its parts.
  CheckpointWriter(const CheckpointFolder &folder, const Session &session, const Keep &keep, bool together);
  CheckpointWriter(const CheckpointWriter &) = delete;
  CheckpointWriter &operator=(const CheckpointWriter &) = delete;
  ~CheckpointWriter(); // waits for the current save

  bool idle();
  uint64_t bytes() const { return bytes_; } // size of all variables
  // Waits for the current save, copies the variables, and returns while the thread writes them. No step may be running.
  // `finite`: the caller has checked that the variables are finite. `keptStep`: the step of a checkpoint that is kept
  // in addition; -1: none.
  void save(Manifest manifest, bool finite = false, int64_t keptStep = -1);
  // Waits for the current save, and makes the file for the parts of all processes. MT_IO.
  Status begin(int64_t step, std::string &place);
  // Ends a save that has begun, without a checkpoint. takeError() then returns `why`.
  void abandon(int64_t step, Status why);
  // Sets the hashes of each process (writeParts()) for the next save().
  void expect(std::vector<std::string> hashes) { hashes_ = std::move(hashes); }
  // Waits for the current save.
  void wait();
  // Returns the error of a save that failed since the last call.
  Status takeError();

private:
  void run();
  Status write();
  Status writeTogether();
  Status checkNumbers() const;
  Status checkNumbers(const SafeTensor &tensor) const;
  template <typename Number> Status checkNumbersOf(const SafeTensor &tensor) const;

  const CheckpointFolder &folder_;
  const Session &session_;
  Keep keep_;
  std::unique_ptr<DividedFile> divided_; // null: this process writes everything
  std::vector<std::string> hashes_;      // by process; used by the thread while busy_
  uint64_t bytes_ = 0;
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
