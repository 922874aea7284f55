// SPDX-License-Identifier: Apache-2.0
//
// The loop over the batches of an epoch, which training, validation and evaluation use.
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

// Lets a stream read only the rows that this process computes. For a plan of several lengths it needs all rows, because
// the longest of them selects the program of a step.
void readOwnRows(const Session &session, StreamOptions &options);

// Runs one program on one dataset: batches, steps and means. On GPUs a step begins before earlier steps are finished.
class EpochLoop {
public:
  EpochLoop() = default;
  EpochLoop(const EpochLoop &) = delete;
  EpochLoop &operator=(const EpochLoop &) = delete;
  ~EpochLoop();
  // `program`: "train_step" or "eval_step". MT_INVALID: the data does not fit the session's plan.
  Status open(Session &session, const mtrun_dataset *data, const char *program, StreamOptions options);

  int64_t steps() const { return stream_->stepsPerEpoch(); } // 0: the epoch ends when the data ends
  double waited() const { return stream_->waited(); }
  size_t metrics() const { return columns_.size(); }
  // The losses and metrics by the names that logs show. A name that logs and histories use for other values ("epoch"),
  // or that begins with "val_", gets the prefix "metric_".
  const std::vector<MetricColumn> &columns() const { return columns_; }
  const std::vector<double> &means() const { return means_->means(); }
  size_t sums() const { return means_->sums().size(); }
  void resetMeans() { means_->reset(); }
  Means &running() { return *means_; }
  // Finishes the next step. Must not be called after the last step of the last epoch. `most`: the maximum number of
  // steps in flight, including this step. No step begins before the last step of the epoch before it is finished.
  Status step(int64_t most);
  // Returns the number of steps that have begun and are not finished.
  int64_t inFlight() const { return inFlight_; }
  // Finishes the steps in flight and discards their results.
  void drop();
  // Whether the last finished step ends its epoch, and its number of samples. 0 samples: a resumed epoch had no
  // step left.
  bool last() const { return batch_->last; }
  int64_t rows() const { return batch_->rows; }
  const Batch &batch() const { return *batch_; } // of the last finished step
  // Takes the next batch without a step.
  const Batch &skip() { return stream_->next(); }
  // MT_INVALID if a loss of the last step is not finite. The message names the loss, and the first input or variable
  // that is not finite.
  Status checkFinite() const;
  // MT_INVALID if a variable is not finite. The message names the first one.
  Status checkVariables() const;

  // Several processes: a hash of all batches so far of a callback that gives each process all rows, for comparison.
  const std::string &hashOfBatches() const { return batchesHash_; }

private:
  Status begin(int64_t most);
  void countBatch(const Batch &batch);

  Session *session_ = nullptr;
  bool train_ = false;
  const char *program_ = "";
  const Batch *batch_ = nullptr; // batch of the last finished step
  // batches from the stream, in order: first the batches in flight, then the waiting batches
  std::vector<const Batch *> taken_;
  std::vector<int64_t> launches_;          // the number of unfinished steps of each launch in flight
  std::vector<Session::Step> launchSteps_; // the steps of the next launch
  int64_t inFlight_ = 0;
  std::vector<MetricColumn> columns_;
  bool comparesBatches_ = false;
  std::string batchesHash_;
  std::unique_ptr<Means> means_;
  std::unique_ptr<BatchStream> stream_;
};

class Stopwatch {
public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Refuses processes whose variables or data differ, before they evaluate or predict. One process compares nothing.
Status compareProcesses(Session &session, const mtrun_dataset &data);

} // namespace mtrun
