// SPDX-License-Identifier: Apache-2.0
//
// A training run, from its options to its last checkpoint.
#pragma once

#include "runtime/loop/Best.h"
#include "runtime/loop/Callbacks.h"
#include "runtime/loop/EpochFile.h"
#include "runtime/loop/Loop.h"
#include "runtime/loop/Rate.h"
#include "runtime/loop/Rescue.h"
#include "runtime/loop/Saver.h"
#include "runtime/receipt/Launches.h"
#include "runtime/receipt/Recorder.h"

#include <memory>
#include <optional>
#include <span>

namespace mtrun {

// All memory is allocated before the first step.
class Fit {
public:
  Status open(Session &session, mtrun_dataset *data, const mtrun_loop_options &options);
  Status run();

  // Before open(): compares the run with a receipt, from its record of step `from`, at which the run begins, to that of
  // step `until`; -1: to its end. `receipt` must outlive the fit.
  void replay(const Receipt &receipt, int64_t from, int64_t until);
  // Returns true if the run has differed from the receipt, which is its error.
  bool differs() const { return receipt_.differs(); }

private:
  // FitData.cpp
  Status nameClasses(mtrun_dataset &data);
  Status holdOut(mtrun_dataset *&data); // splits off validation data; `data` becomes the rest
  // FitOpen.cpp
  Status openTraining(const mtrun_dataset *data);
  Status openValidation();
  Status openCallbacks();
  void openHistory();

  // FitReceipt.cpp
  Status beginReceipt(const mtrun_dataset &data, LoopState now, StreamOptions &stream);
  Status hashAgain(const mtrun_dataset &data, int64_t stepsPerEpoch, int64_t steps, StreamOptions stream);
  Status startReceipt();
  Status recordStep(); // if it is due
  Status endReceipt();
  bool hashesLaunches() const { return options_.hash_launches == state_.step + 1; } // in the next step

  // FitTogether.cpp
  Status openSaver();
  Status resume(const mtrun_checkpoint_options &checkpoint);
  void rescue(const Status &why); // keeps the variables in memory after the loss of a process
  void keepInMemory();
  Status agree(const mtrun_dataset &data, const LoopState &state, int64_t seed); // compares the processes
  // Returns true if the run must stop. `now`: process 0 says in this call whether; all processes pass the same.
  bool mustStop(bool now = false);
  int64_t granted() const; // number of steps that may begin
  // Returns what process 0 passes, in all processes, if they divide the optimizer; else `own`.
  bool decidedByFirst(bool own);

  // Writes the history and the epoch's file again, if the run was stopped between a save and these files.
  void writeAgain();
  bool nothingLeft() const;
  void writeHistory();
  void writeEpochFile();
  Status runEpoch();
  Status validate();
  Status endEpoch();
  Status finish();
  void updateCallbacks();
  std::span<const double> watched() const; // the values that this epoch has
  void report(bool epochEnd);
  void keepState(); // completes state_ for a checkpoint
  // `finite`: the caller has checked that the variables are finite.
  Status save(std::optional<double> monitored, bool finite = false);
  void note(const std::string &line) const;
  void warn(const std::string &line) const;
  bool validates(int64_t epoch) const { // `epoch` counts from 0
    return validates_ && (epoch + 1) % options_.validation_freq == 0;
  }
  // Returns the number of steps that may be in flight, so that a callback that reads variables between two steps finds
  // the values of that time.
  int64_t maxInFlight() const;

  Session *session_ = nullptr;
  mtrun_loop_options options_ = {};
  LoopState state_;
  Saver saver_;
  Recorder receipt_;
  LaunchDigests launches_;
  const Receipt *expected_ = nullptr; // the receipt to compare with, or null
  Rescue rescue_;
  std::unique_ptr<mtrun_dataset> kept_, held_;    // the parts of a split, or null
  std::unique_ptr<mtrun_dataset> validationData_; // the samples of options.validation_steps
  EpochLoop train_, validation_;
  bool validates_ = false, wantsStop_ = false, stop_ = false, notFinite_ = false;
  bool replayed_ = false; // the last record to compare with has been compared
  // with several processes: calls of mustStop() since the last broadcast, and the call that makes the next broadcast
  int64_t stopCalls_ = 0, nextBroadcast_ = 1;
  Stopwatch sinceBroadcast_;
  std::vector<MetricColumn> columns_; // training's, then validation's
  std::vector<const char *> names_;   // names of columns_
  std::vector<double> values_;        // values of columns_
  Rate rate_;
  bool saveDue_ = false;       // a save is due when no step is in flight
  bool savesTogether_ = false; // the processes divide the optimizer, and process 0 may save after any step
  Callbacks callbacks_;
  Best best_;
  EpochFile epochFile_;
  Status fileError_;          // error of the last epoch's file
  bool historyFails_ = false; // true if the last attempt failed
  mtrun_progress progress_ = {};
  Stopwatch total_, epoch_;
  double waitedBefore_ = 0; // seconds of waiting for data before the current epoch
};

} // namespace mtrun
