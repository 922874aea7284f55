// SPDX-License-Identifier: Apache-2.0
//
// Callbacks that watch metrics from epoch to epoch: early stopping, a lower learning rate on a plateau, the file of the
// best epoch. Checkpoints keep their state, which is a few numbers. Rules and defaults are the same as in Keras.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mtrun {

// A loss or metric of an epoch. The columns of training come first, then the columns of validation.
struct MetricColumn {
  std::string name;
  bool higherIsBetter = false;
  bool loss = false;
};

// The watched metric, and whether higher values of it are better.
struct Monitor {
  std::string name;
  int index = -1; // index of the column; -1: no column has this name
  bool higher = false;

  // Parses "NAME", "NAME:max" or "NAME:min".
  static Monitor find(const std::string &text, std::span<const MetricColumn> columns);
  // Returns the metric's value; nullopt if `values`, which has the first columns, does not include it.
  std::optional<double> of(std::span<const double> values) const;
};

// The best value so far. NaN is never better than another value.
class Record {
public:
  Record(const Monitor &monitor, double minDelta) : monitor_(monitor), minDelta_(minDelta) {}

  const Monitor &monitor() const { return monitor_; }
  bool isBetter(double value, double reference) const {
    return (monitor_.higher ? value - reference : reference - value) > minDelta_;
  }
  // Returns true if the value is better than all values before.
  bool update(double value);
  bool seen() const { return seen_; }
  bool improved() const { return improved_; } // in the last epoch
  void pass() { improved_ = false; }          // an epoch without a value of this metric
  double best() const { return best_; }

  static constexpr size_t numberCount = 3;
  std::vector<double> state() const { return {seen_ ? 1.0 : 0.0, best_, improved_ ? 1.0 : 0.0}; }
  void restore(std::span<const double> state); // `state` has numberCount numbers

private:
  Monitor monitor_;
  double minDelta_;
  bool seen_ = false, improved_ = false;
  double best_ = 0;
};

class Callbacks {
public:
  // MT_INVALID: no column has the name of a monitor, or an option is out of range.
  Status open(const mtrun_loop_options &options, std::span<const MetricColumn> columns, bool validates);
  // Restores the state of the callbacks in use from a checkpoint.
  void restore(const LoopState &state);
  void keep(LoopState &state) const;

  // Called after each epoch; `epoch` counts from 0, and `step` is the last step of the epoch, counted from the run's
  // begin. `values` has all columns, or without validation only the columns of training; a callback that watches a
  // missing column skips the epoch.
  void update(int64_t epoch, int64_t step, std::span<const double> values);

  bool stops() const { return stops_; }     // early stopping ends the run
  bool reduces() const { return reduces_; } // the plateau callback requests a lower rate
  bool improved() const { return early_ && early_->improved(); }
  // Returns true if the file of this epoch must be written.
  bool writesFile() const { return !file_ || file_->improved(); }

  const Record *early() const { return early_ ? &*early_ : nullptr; } // null without early stopping
  // step of the best epoch of early stopping; -1: none yet
  int64_t bestStep() const { return bestStep_; }
  const Record *plateau() const { return plateau_ ? &*plateau_ : nullptr; }
  const Monitor &checkpoints() const { return checkpoints_; }

private:
  void updateEarly(int64_t step, double value);
  void updatePlateau(double value);

  std::optional<Record> early_, plateau_, file_;
  Monitor checkpoints_;
  int64_t patience_ = 0, startEpoch_ = 0, earlyWaited_ = 0, bestStep_ = -1;
  std::optional<double> baseline_;
  int64_t plateauPatience_ = 0, cooldown_ = 0, plateauWaited_ = 0, cooling_ = 0;
  bool stops_ = false, reduces_ = false;
};

} // namespace mtrun
