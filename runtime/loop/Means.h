// SPDX-License-Identifier: Apache-2.0
//
// Running means of losses and metrics: sum(value * weight) / sum(weight) over steps, in double.
#pragma once

#include "runtime/abi/mtrun.h"

#include <cstdint>
#include <vector>

namespace mtrun {

class Means {
public:
  explicit Means(size_t count) : values_(count), weights_(count), sums_(count), total_(count), means_(count) {}

  void reset() {
    sums_.assign(sums_.size(), 0);
    total_.assign(total_.size(), 0);
    means_.assign(means_.size(), 0);
  }

  // Where a step call puts its results; add() takes them in.
  mtrun_results *results() {
    results_ = {values_.data(), weights_.data()};
    return &results_;
  }

  void add() {
    for (size_t i = 0; i < sums_.size(); ++i) {
      if (weights_[i] == 0) // a step without weight says nothing, and its mean may be 0/0
        continue;
      sums_[i] += values_[i] * weights_[i];
      total_[i] += weights_[i];
      means_[i] = sums_[i] / total_[i];
    }
  }

  // This step's values, as the step call wrote them.
  const std::vector<double> &values() const { return values_; }
  const std::vector<double> &weights() const { return weights_; }

  // What a checkpoint keeps: with these back, the means go on as if they had never stopped.
  const std::vector<double> &sums() const { return sums_; }
  const std::vector<double> &totals() const { return total_; }
  void restore(const std::vector<double> &sums, const std::vector<double> &totals) {
    sums_ = sums;
    total_ = totals;
    for (size_t i = 0; i < sums_.size(); ++i)
      means_[i] = total_[i] == 0 ? 0 : sums_[i] / total_[i];
  }

  const std::vector<double> &means() const { return means_; } // 0 where there was no weight yet

private:
  std::vector<double> values_, weights_, sums_, total_, means_;
  mtrun_results results_ = {};
};

} // namespace mtrun
