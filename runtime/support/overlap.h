// SPDX-License-Identifier: Apache-2.0
//
// Which launches may run concurrently with an all-reduce, and which must wait for it: decided by the memory that each
// touches, so that it holds whatever the order of the steps and the reuse of memory in a plan.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mtrun {

struct Range {
  uint64_t begin, end; // addresses
};

// One device's two streams, as a program is recorded in order: `compute` has the launches, `links` the all-reduces, and
// behind them the launches that need nothing but state and results (updates of variables), so that the backward pass
// goes on meanwhile. What is on `links` waits for all that was on `compute` before it.
class Overlap {
public:
  struct Place {
    bool onCommunication;
    int after; // compute must wait for this operation of `links`; -1: for none
  };

  // Reads or writes, both alike: two that touch the same memory run in the plan's order. `isUpdate`: touches state that
  // devices share, and no memory of a pass.
  Place launch(std::span<const Range> touched, bool isUpdate);
  void allReduce(std::span<const Range> touched) { links_.emplace_back(touched.begin(), touched.end()); }
  // Operations on `links` so far.
  int links() const { return static_cast<int>(links_.size()); }

private:
  std::vector<std::vector<Range>> links_;
  int waited_ = 0; // those below are known to be done where compute is
};

} // namespace mtrun
