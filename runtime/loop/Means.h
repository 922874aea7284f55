// SPDX-License-Identifier: Apache-2.0
//
// Means of losses and metrics over steps, computed from their sums in double.
#pragma once

#include "runtime/abi/mtrun.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace mtrun {

class Means {
public:
  // Computes a metric from all sums and weights.
  using Value = std::function<double(size_t metric, const double *sums, const double *weights)>;

  Means(size_t metrics, size_t sums, Value value)
      : value_(std::move(value)), values_(metrics), weights_(metrics), stepSums_(sums), sums_(sums), total_(metrics),
        means_(metrics) {}

  void reset() {
    sums_.assign(sums_.size(), 0);
    total_.assign(total_.size(), 0);
    means_.assign(means_.size(), 0);
  }

  // Returns the struct that a step fills with its results; add() adds them to the sums.
  mtrun_results *results() {
    results_ = {values_.data(), weights_.data(), stepSums_.data(), &rate_};
    return &results_;
  }

  void add() {
    for (size_t i = 0; i < sums_.size(); ++i)
      sums_[i] += stepSums_[i];
    for (size_t i = 0; i < total_.size(); ++i)
      total_[i] += weights_[i];
    finish();
  }

  // The values and weights of the last step.
  const std::vector<double> &values() const { return values_; }
  const std::vector<double> &weights() const { return weights_; }

  // The learning rate of the last step if a schedule computes it; else NaN.
  double learningRate() const { return rate_; }

  // The state for a checkpoint: after restore() the means continue with the same bits.
  const std::vector<double> &sums() const { return sums_; }
  const std::vector<double> &totals() const { return total_; }
  void restore(const std::vector<double> &sums, const std::vector<double> &totals) {
    sums_ = sums;
    total_ = totals;
    finish();
  }

  const std::vector<double> &means() const { return means_; } // 0 if the weight is 0 so far

private:
  void finish() {
    for (size_t i = 0; i < means_.size(); ++i)
      means_[i] = value_(i, sums_.data(), total_.data());
  }

  Value value_;
  std::vector<double> values_, weights_, stepSums_, sums_, total_, means_;
  double rate_ = std::numeric_limits<double>::quiet_NaN();
  mtrun_results results_ = {};
};

} // namespace mtrun
