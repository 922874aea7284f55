// SPDX-License-Identifier: Apache-2.0
//
// Chooses the length of each step for a plan of several sequence lengths, and cuts the step's tensors to this length.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mtrun {

class LengthChoice {
public:
  // Allocates the memory for all steps. Throws std::bad_alloc.
  explicit LengthChoice(const Plan &plan);
  // Returns the maximum number of bytes that the constructor allocates.
  static uint64_t bytes(const Plan &plan);

  // Returns true if `program` exists for each length.
  bool has(std::string_view program) const;

  // The program and the tensors of a step. `program` is an index into Plan.programs; `tensors` is valid until finish().
  struct Chosen {
    uint32_t program;
    const void *const *tensors;
  };
  /// Chooses the length for rows [0, n) of the caller's tensors, which have the largest length. `tensors` must be
  /// complete and n valid.
  Chosen begin(std::string_view program, const void *const *tensors, int64_t n);
  // Ends the step: copies its outputs into tensors of the largest length and fills the rest with zeros.
  void finish();

  // Returns the number of steps of each length so far.
  const std::vector<int64_t> &steps() const { return steps_; }

private:
  // Returns the number of positions of the longest sample: up to its last nonzero element.
  uint64_t longest(const mt::plan::Program &program, const void *const *tensors, int64_t n) const;
  void cut(const mt::plan::Program &whole, const mt::plan::Program &part, const void *const *tensors, int64_t n);

  struct Output {
    const std::byte *from;
    std::byte *to;
    uint64_t fromBytes, toBytes; // per row
  };

  const Plan &plan_;
  std::vector<std::byte> room_;      // storage for tensors of all lengths except the largest
  std::vector<const void *> chosen_; // the tensors of the chosen program's signature
  std::vector<Output> outputs_;      // outputs of the current step that were cut
  int64_t rows_ = 0;
  std::vector<int64_t> steps_;
};

} // namespace mtrun
