// SPDX-License-Identifier: Apache-2.0
//
// When a fit saves, and where it begins: the policy around the checkpoint folder.
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
  // Opens the folder and resumes what `options` say: the session's variables and seed, and `state`, which otherwise
  // stays. A line to `note` for whatever was skipped and resumed.
  Status open(Session &session, const mtrun_checkpoint_options &options,
              const std::function<void(const std::string &)> &note, LoopState &state);
  bool resumed() const { return resumed_; }
  const std::string &resumedFrom() const { return from_; }
  // The data of the run that goes on: another than the checkpoint's is an error, or with force begins the epoch again.
  Status checkData(const LoopState &now, LoopState &state) const;
  // Starts the writer; after the data is known. `allowNan`: save variables that are not finite.
  Status start(const Monitor &monitor, bool allowNan);

  bool writes() const { return writer_ != nullptr; }
  bool dueAfterStep(int64_t step);
  // Steps from `step` on until one after which a save is due whatever the time.
  int64_t stepsUntilDue(int64_t step) const;
  bool dueAfterEpoch(int64_t epochs);
  // Copies the variables and returns; the error of an earlier save goes to the session's log.
  // `finite`: the variables are, the caller has looked. `keptStep`: of a checkpoint that stays beside the newest and
  // the best; -1: none.
  void save(const LoopState &state, std::optional<double> monitored, bool finite, int64_t keptStep);
  // After the last save: waits for it. Its error.
  Status finish();
  // Is that in a checkpoint, or on its way to one?
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
