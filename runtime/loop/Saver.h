// SPDX-License-Identifier: Apache-2.0
//
// The policy of checkpoints: when a fit saves, and from which checkpoint it resumes.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/checkpoint/Resume.h"
#include "runtime/checkpoint/Writer.h"
#include "runtime/loop/Callbacks.h"
#include "runtime/loop/Loop.h"

#include <functional>
#include <memory>
#include <string>

namespace mtrun {

class Saver {
public:
  // Opens the folder and resumes the checkpoint that `options` select: sets the session's variables and seed, and
  // `state`, which otherwise stays unchanged. Calls `note` with a line for each checkpoint that was skipped or resumed.
  Status open(Session &session, const mtrun_checkpoint_options &options,
              const std::function<void(const std::string &)> &note, LoopState &state);
  bool resumed() const { return resumed_; }
  const std::string &resumedFrom() const { return from_; }
  // Compares the data with the data of the checkpoint. A difference is an error; with `force` the epoch begins again.
  Status checkData(const LoopState &now, LoopState &state) const;
  // Starts the writer, once the data is known. `allowNan`: variables that are not finite are saved too.
  Status start(const Monitor &monitor, bool allowNan);

  bool writes() const { return writer_ != nullptr; }
  bool dueAfterStep(int64_t step);
  // Returns the number of steps from `step` to the next step after which a save is due regardless of time.
  int64_t stepsUntilDue(int64_t step) const;
  bool dueAfterEpoch(int64_t epochs);
  // Copies the variables and returns; an error of an earlier save goes to the session's log. `finite`: the caller has
  // checked that the variables are finite. `keptStep`: the step of a checkpoint that is kept in addition to the newest
  // and the best; -1: none.
  void save(const LoopState &state, std::optional<double> monitored, bool finite, int64_t keptStep);
  // Waits for the last save and returns its error.
  Status finish();
  // Returns true if `state` is in a checkpoint or is being saved.
  bool has(const LoopState &state) const { return savedStep_ == state.step && savedEpochEnd_ == (state.position == 0); }

private:
  Status resume(const std::string &what, const std::function<void(const std::string &)> &note, LoopState &state);
  void setAside(const std::vector<std::string> &skipped, int64_t resumedStep,
                const std::function<void(const std::string &)> &note) const;

  Session *session_ = nullptr;
  mtrun_checkpoint_options options_ = {};
  Disk disk_;
  CheckpointFolder folder_;
  bool opened_ = false, resumed_ = false, samePlan_ = true;
  std::string from_, monitor_;
  std::unique_ptr<CheckpointWriter> writer_;
  Stopwatch sinceSave_;
  int64_t savedStep_ = -1;
  bool savedEpochEnd_ = false;
};

} // namespace mtrun
