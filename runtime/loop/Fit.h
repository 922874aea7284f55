// SPDX-License-Identifier: Apache-2.0
//
// A training run, from its options to its last checkpoint.
#pragma once

#include "runtime/loop/Best.h"
#include "runtime/loop/Callbacks.h"
#include "runtime/loop/EpochFile.h"
#include "runtime/loop/Loop.h"
#include "runtime/loop/Rate.h"
#include "runtime/loop/Saver.h"

#include <memory>
#include <optional>
#include <span>

namespace mtrun {

// Everything is allocated before the first step.
class Fit {
public:
  Status open(Session &session, mtrun_dataset *data, const mtrun_loop_options &options);
  Status run();

private:
  // FitData.cpp
  Status nameClasses(mtrun_dataset &data);
  Status holdOut(mtrun_dataset *&data); // to validate on; the others become `data`
  // FitOpen.cpp
  Status openTraining(const mtrun_dataset *data);
  Status openValidation();
  Status openCallbacks();
  void openHistory();

  // FitTogether.cpp
  Status openSaver();
  Status agree(const LoopState &data, int64_t seed) const; // with the first process
  bool asked();                                            // to stop
  int64_t granted() const;                                 // steps that may begin

  // What a run that was stopped between a save and the files that go with it did not write.
  void writeAgain();
  bool nothingLeft() const;
  void writeHistory();
  void writeEpochFile();
  Status runEpoch();
  Status validate();
  Status endEpoch();
  Status finish();
  void updateCallbacks();
  std::span<const double> watched() const; // values that this epoch has
  void report(bool epochEnd);
  // `finite`: the variables are known to be.
  void save(std::optional<double> monitored, bool finite = false);
  void note(const std::string &line) const;
  void warn(const std::string &line) const;
  bool validates(int64_t epoch) const { // from 0
    return validates_ && (epoch + 1) % options_.validation_freq == 0;
  }
  // Steps that may be under way together: whoever looks at variables between two steps finds them as they are there.
  int64_t together() const;

  Session *session_ = nullptr;
  mtrun_loop_options options_ = {};
  LoopState state_;
  Saver saver_;
  std::unique_ptr<mtrun_dataset> kept_, held_;    // of a split, or null
  std::unique_ptr<mtrun_dataset> validationData_; // of options with a number of validation steps
  EpochLoop train_, validation_;
  bool validates_ = false, wantsStop_ = false, stop_ = false, notFinite_ = false;
  int64_t asked_ = 0, nextWord_ = 1; // of several processes: calls of asked() since the first spoke, and when it will
  Stopwatch sinceWord_;
  std::vector<MetricColumn> columns_; // training's, then validation's
  std::vector<const char *> names_;   // theirs
  std::vector<double> values_;        // theirs
  Rate rate_;
  bool saveDue_ = false; // once nothing is in flight
  Callbacks callbacks_;
  Best best_;
  EpochFile epochFile_;
  Status fileError_;          // of the last epoch file
  bool historyFails_ = false; // the last time that it was written
  mtrun_progress progress_ = {};
  Stopwatch total_, epoch_;
  double waitedBefore_ = 0; // the epoch under way
};

} // namespace mtrun
