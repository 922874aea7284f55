// SPDX-License-Identifier: Apache-2.0
//
// What watches metrics from epoch to epoch: early stopping, a learning rate that falls on a plateau, the best epoch's
// file. What they remember is a few numbers, which checkpoints keep. Rules and defaults are Keras'.
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

// A loss or metric of an epoch; those of training come first, then those of validation.
struct MetricColumn {
  std::string name;
  bool higherIsBetter = false;
  bool loss = false;
};

// Which metric is watched, and which of its values is the better one.
struct Monitor {
  std::string name;
  int index = -1; // of the columns; -1: there is none of that name
  bool higher = false;

  // "NAME", "NAME:max", "NAME:min".
  static Monitor find(const std::string &text, std::span<const MetricColumn> columns);
  // None: the values, of the first columns, end before its own.
  std::optional<double> of(std::span<const double> values) const;
};

// The best value so far. NaN is never better.
class Record {
public:
  Record(const Monitor &monitor, double minDelta) : monitor_(monitor), minDelta_(minDelta) {}

  const Monitor &monitor() const { return monitor_; }
  bool isBetter(double value, double reference) const {
    return (monitor_.higher ? value - reference : reference - value) > minDelta_;
  }
  // Whether the value is better than all before.
  bool update(double value);
  bool seen() const { return seen_; }
  bool improved() const { return improved_; } // by the last epoch
  void pass() { improved_ = false; }          // an epoch went by
  double best() const { return best_; }

  static constexpr size_t numberCount = 3;
  std::vector<double> state() const { return {seen_ ? 1.0 : 0.0, best_, improved_ ? 1.0 : 0.0}; }
  void restore(std::span<const double> state); // that many

private:
  Monitor monitor_;
  double minDelta_;
  bool seen_ = false, improved_ = false;
  double best_ = 0;
};

class Callbacks {
public:
  // MT_INVALID: a monitor that is not among the columns, numbers that mean nothing.
  Status open(const mtrun_loop_options &options, std::span<const MetricColumn> columns, bool validates);
  // Takes back what a checkpoint kept of the callbacks that there are.
  void restore(const LoopState &state);
  void keep(LoopState &state) const;

  // After an epoch, the first of which is 0, whose last step is `step` of the run. Values of all columns, or without
  // validation of those of training; whoever watches another lets the epoch pass.
  void update(int64_t epoch, int64_t step, std::span<const double> values);

  bool stops() const { return stops_; }     // early stopping ends the run
  bool reduces() const { return reduces_; } // the plateau asks for a lower rate
  bool improved() const { return early_ && early_->improved(); }
  // The file of this epoch is to be written.
  bool writesFile() const { return !file_ || file_->improved(); }

  const Record *early() const { return early_ ? &*early_ : nullptr; } // null without early stopping
  int64_t bestStep() const { return bestStep_; }                      // of early stopping; -1: none yet
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
