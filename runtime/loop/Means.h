// SPDX-License-Identifier: Apache-2.0
//
// Losses and metrics over steps: what each is of its sums so far, in double.
#pragma once

#include "runtime/abi/mtrun.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace mtrun {

class Means {
public:
  // A metric's value of all sums and weights.
  using Value = std::function<double(size_t metric, const double *sums, const double *weights)>;

  Means(size_t metrics, size_t sums, Value value)
      : value_(std::move(value)), values_(metrics), weights_(metrics), stepSums_(sums), sums_(sums), total_(metrics),
        means_(metrics) {}

  void reset() {
    sums_.assign(sums_.size(), 0);
    total_.assign(total_.size(), 0);
    means_.assign(means_.size(), 0);
  }

  // Where a step call puts its results; add() takes them in.
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

  // This step's values, as the step call wrote them.
  const std::vector<double> &values() const { return values_; }
  const std::vector<double> &weights() const { return weights_; }

  // That this step used, where a schedule computes it; else NaN.
  double learningRate() const { return rate_; }

  // What a checkpoint keeps: with these back, the means go on as if they had never stopped.
  const std::vector<double> &sums() const { return sums_; }
  const std::vector<double> &totals() const { return total_; }
  void restore(const std::vector<double> &sums, const std::vector<double> &totals) {
    sums_ = sums;
    total_ = totals;
    finish();
  }

  const std::vector<double> &means() const { return means_; } // 0 where there was no weight yet

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
