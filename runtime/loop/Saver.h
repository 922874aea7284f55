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
  using Note = std::function<void(const std::string &)>;

  // Opens the folder. Calls `note` with a line for each folder inside that is no checkpoint.
  Status open(Session &session, const mtrun_checkpoint_options &options, const Note &note);
  // Finds the checkpoint that the options select. Calls `note` with a line for each checkpoint that was skipped.
  Status find(const Note &note, Checkpoint &checkpoint, bool &found) const;
  // Resumes a checkpoint: sets the session's variables and seed, and `state`.
  Status adopt(const Checkpoint &checkpoint, const Note &note, LoopState &state);
  bool resumesNewest() const; // "auto": the newest of the run
  // The run whose checkpoints are in the folder; its name is "" without a folder.
  const Incarnation &incarnation() const { return folder_.incarnation(); }
  void keepFolder() { folder_.keep(); }
  // Returns the folder where the checkpoint of the best epoch is.
  std::string bestFolder() const;
  bool resumed() const { return resumed_; }
  const std::string &resumedFrom() const { return from_; }
  // Compares the data with the data of the checkpoint. A difference is an error; with `force` the epoch begins again.
  Status checkData(const LoopState &now, LoopState &state) const;
  // Decides in all processes whether each writes its parts of the optimizer's variables into the folder, which all must
  // have in common; else process 0 collects them. Collective, if the processes divide the optimizer.
  Status meet(Session &session, const Note &note);
  bool savesTogether() const { return divided_ != nullptr; }
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
  // The same in all processes, if savesTogether(). MT_LOST.
  Status saveTogether(const LoopState &state, std::optional<double> monitored, bool finite, int64_t keptStep);
  // Waits for the last save and returns its error.
  Status finish();
  // Returns a manifest of the variables as they are now, except for what belongs to files.
  Manifest manifestOf(const LoopState &state, std::optional<double> monitored) const;
  // Returns true if `state` is in a checkpoint or is being saved.
  bool has(const LoopState &state) const { return savedStep_ == state.step && savedEpochEnd_ == (state.position == 0); }

private:
  void tellError();
  void setAside(const std::vector<std::string> &skipped, int64_t resumedStep, const Note &note) const;

  Session *session_ = nullptr;
  mtrun_checkpoint_options options_ = {};
  Disk disk_;
  CheckpointFolder folder_;
  bool opened_ = false, resumed_ = false, samePlan_ = true;
  std::string resume_; // the option; "": none
  std::string from_, monitor_;
  std::unique_ptr<CheckpointWriter> writer_;
  std::unique_ptr<DividedFile> divided_; // null: process 0 writes everything
  Stopwatch sinceSave_;
  int64_t savedStep_ = -1;
  bool savedEpochEnd_ = false;
};

} // namespace mtrun
