// SPDX-License-Identifier: Apache-2.0
//
// Of a plan for sequences of several lengths: which of them a step takes, and the step's tensors cut to it.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mtrun {

class LengthChoice {
public:
  // Takes the memory for all steps to come. Throws std::bad_alloc.
  explicit LengthChoice(const Plan &plan);
  // What it takes, at most.
  static uint64_t bytes(const Plan &plan);

  // Whether the lengths have the program.
  bool has(std::string_view program) const;

  // What a step of `program` on rows [0, n) of the caller's tensors, which are as for the largest length, runs: an
  // index into Plan.programs, and the tensors that it takes until finish(). `tensors` are complete, and n is valid.
  struct Chosen {
    uint32_t program;
    const void *const *tensors;
  };
  Chosen begin(std::string_view program, const void *const *tensors, int64_t n);
  // The step is over: its outputs become those of the largest length, with zeros behind what was computed.
  void finish();

  // Steps of each length so far.
  const std::vector<int64_t> &steps() const { return steps_; }

private:
  // Positions of the longest of the samples: where the last element is that is not zero.
  uint64_t longest(const mt::plan::Program &program, const void *const *tensors, int64_t n) const;
  void cut(const mt::plan::Program &whole, const mt::plan::Program &part, const void *const *tensors, int64_t n);

  struct Output {
    const std::byte *from;
    std::byte *to;
    uint64_t fromBytes, toBytes; // of a row
  };

  const Plan &plan_;
  std::vector<std::byte> room_;      // for tensors of all lengths but the largest
  std::vector<const void *> chosen_; // a tensor each, of the signature
  std::vector<Output> outputs_;      // of the step that runs, that were cut
  int64_t rows_ = 0;
  std::vector<int64_t> steps_;
};

} // namespace mtrun
