// SPDX-License-Identifier: Apache-2.0
//
// Decides which launches may run concurrently with an all-reduce and which must wait for it. The decision depends only
// on the memory ranges that each operation accesses, so it is correct for any order of entries and any reuse of memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mtrun {

struct Range {
  uint64_t begin, end; // addresses
};

// The two streams of a device, for a program that is recorded in order. `compute` has the launches. `links` has the
// all-reduces, and after each the launches that need only state and results (updates of variables), so that the
// backward pass continues meanwhile. An operation on `links` waits for everything that was on `compute` before it.
class Overlap {
public:
  struct Place {
    bool onCommunication;
    int after; // the operation of `links` that compute must wait for; -1: none
  };

  // Adds a launch. Reads and writes count alike: two operations that access the same memory run in the plan's order.
  // `isUpdate`: the launch accesses only state that devices share, and no memory of a micro-batch.
  Place launch(std::span<const Range> touched, bool isUpdate);
  void allReduce(std::span<const Range> touched) { links_.emplace_back(touched.begin(), touched.end()); }
  // Returns the number of operations on `links` so far.
  int links() const { return static_cast<int>(links_.size()); }

private:
  std::vector<std::vector<Range>> links_;
  int waited_ = 0; // operations below this index are finished from the view of `compute`
};

} // namespace mtrun
