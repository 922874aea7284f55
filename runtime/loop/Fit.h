// SPDX-License-Identifier: Apache-2.0
//
// The state of one mtrun_fit call.
#pragma once

#include "runtime/loop/Best.h"
#include "runtime/loop/Callbacks.h"
#include "runtime/loop/EpochFile.h"
#include "runtime/loop/Loop.h"
#include "runtime/loop/Saver.h"

#include <cmath>
#include <optional>

namespace mtrun {

// Everything is allocated before the first step.
class Fit {
public:
  Status open(mtrun_session *session, const mtrun_dataset *data, const mtrun_loop_options &options);
  Status run();

private:
  Status openSaver();
  Status agree(const LoopState &data, int64_t seed) const; // with the first process
  Status openTraining(const mtrun_dataset *data);
  Status openValidation();
  Status openCallbacks();
  Status scaleRate();
  Status writeEpoch() const; // history, and the epoch's file
  Status runEpoch();
  Status validate();
  Status endEpoch();
  Status finish();
  // The last call of an epoch: the callbacks' turn, with the monitored value if it is there.
  void updateCallbacks();
  void report(bool epochEnd);
  // `finite`: the variables are known to be.
  void save(std::optional<double> monitored, bool finite = false);
  bool asked(); // to stop
  void note(const std::string &line) const;
  std::optional<double> monitored() const;
  double learningRate();
  int64_t granted() const; // steps that may begin
  // Steps that may be under way together: whoever looks at variables between two steps finds them as they are there.
  int64_t together() const;

  mtrun_session *session_ = nullptr;
  mtrun_loop_options options_ = {};
  LoopState state_;
  Saver saver_;
  Pass train_, validation_;
  bool validates_ = false, wantsStop_ = false, stop_ = false, early_ = false;
  int64_t asked_ = 0, nextWord_ = 1; // of several processes: calls of asked() since the first spoke, and when it will
  Stopwatch sinceWord_;
  std::vector<std::string> validationNames_;
  std::vector<const char *> names_; // training metrics, then val_ ones
  std::vector<double> values_;
  std::string monitor_;
  int monitorIndex_ = -1; // of names_
  int rate_ = -1;         // the learning rate's variable
  float rateNow_ = NAN;
  std::optional<uint64_t> rateSeen_; // Session::changes() when it was read
  bool saveDue_ = false;             // once nothing is in flight
  std::optional<Patience> earlyStop_, plateau_;
  Best best_;
  EpochFile epochFile_;
  mtrun_progress progress_ = {};
  Stopwatch total_, epoch_;
  double waitedBefore_ = 0; // the epoch under way
};

} // namespace mtrun
