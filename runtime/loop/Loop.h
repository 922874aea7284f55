// SPDX-License-Identifier: Apache-2.0
//
// What the loops share: a pass of one program over a stream of batches.
#pragma once

#include "runtime/data/BatchStream.h"
#include "runtime/loop/Callbacks.h"
#include "runtime/loop/Means.h"
#include "runtime/session/Session.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace mtrun {

// One program on one dataset: its batches, its steps and its means. On GPUs steps begin before those before them are
// finished.
class EpochLoop {
public:
  EpochLoop() = default;
  EpochLoop(const EpochLoop &) = delete;
  EpochLoop &operator=(const EpochLoop &) = delete;
  ~EpochLoop() { drop(); }
  // `program`: "train_step" or "eval_step". Checks that the data fits the session's plan. MT_INVALID.
  Status open(Session &session, const mtrun_dataset *data, const char *program, StreamOptions options);

  int64_t steps() const { return stream_->stepsPerEpoch(); } // 0: until the data ends
  double waited() const { return stream_->waited(); }
  size_t metrics() const { return columns_.size(); }
  // Losses and metrics by the names that logs show: a name that logs and histories use themselves ("epoch"), or that
  // begins as validation's do, has metric_ before it.
  const std::vector<MetricColumn> &columns() const { return columns_; }
  const std::vector<double> &means() const { return means_->means(); }
  size_t sums() const { return means_->sums().size(); }
  void resetMeans() { means_->reset(); }
  Means &running() { return *means_; }
  // Finishes the next step. Not to be called after the last one of the last epoch. `most`: steps that may be under way
  // together with it, itself among them; no step begins before the last one of its epoch is finished.
  Status step(int64_t most);
  // Steps that began after the last one that is finished.
  int64_t inFlight() const { return inFlight_; }
  // Ends what is in flight; its results are lost.
  void drop();
  // Of the last step that is finished: whether its epoch ends there, and its samples; 0: there was no step left in a
  // resumed epoch.
  bool last() const { return batch_->last; }
  int64_t rows() const { return batch_->rows; }
  // MT_INVALID if a loss of the last step is not finite: names it, and the first input or variable that is not.
  Status checkFinite() const;
  // MT_INVALID if a variable is not finite: names the first.
  Status checkVariables() const;

private:
  Status begin(int64_t most);

  Session *session_ = nullptr;
  bool train_ = false;
  const char *program_ = "";
  const Batch *batch_ = nullptr;        // of the last step
  std::vector<const Batch *> taken_;    // of the stream, in order: those in flight, then those that wait
  std::vector<int64_t> launches_;       // in flight: steps of each that are not finished
  std::vector<Session::Step> together_; // room for a launch
  int64_t inFlight_ = 0;
  std::vector<MetricColumn> columns_;
  std::unique_ptr<Means> means_;
  std::unique_ptr<BatchStream> stream_;
};

class Stopwatch {
public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

} // namespace mtrun
