// SPDX-License-Identifier: Apache-2.0
//
// What watches a metric from epoch to epoch. Their memory is a few numbers, which checkpoints keep.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace mtrun {

// Large is good for names like Keras' "auto" mode finds: accuracies and areas under curves.
inline bool largeIsGood(const std::string &metric) {
  return metric.find("acc") != std::string::npos || metric.find("auc") != std::string::npos;
}

// Counts epochs since the best value. NaN is never better.
class Patience {
public:
  Patience(int64_t epochs, double minDelta, bool large) : epochs_(epochs), minDelta_(minDelta), large_(large) {}

  // True: `epochs` of them went by without a better one. The count then begins again.
  bool update(double value) {
    double gain = large_ ? value - best_ : best_ - value;
    if (!seen_ ? !std::isnan(value) : gain > minDelta_) {
      seen_ = true;
      best_ = value;
      waited_ = 0;
      improved_ = true;
      return false;
    }
    improved_ = false;
    if (++waited_ < epochs_)
      return false;
    waited_ = 0;
    return true;
  }

  bool seen() const { return seen_; } // a value that is not NaN
  double best() const { return best_; }
  bool improved() const { return improved_; } // by the last update
  std::vector<double> state() const { return {seen_ ? 1.0 : 0.0, best_, static_cast<double>(waited_)}; }
  void restore(const std::vector<double> &state) {
    if (state.size() != 3)
      return; // the run that was stopped had no such callback
    seen_ = state[0] != 0;
    best_ = state[1];
    waited_ = state[2] > 0 && state[2] < 1e15 ? static_cast<int64_t>(state[2]) : 0; // any double may stand in a file
  }

private:
  int64_t epochs_;
  double minDelta_;
  bool large_;
  bool seen_ = false, improved_ = false;
  double best_ = 0;
  int64_t waited_ = 0;
};

} // namespace mtrun
