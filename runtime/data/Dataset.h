// SPDX-License-Identifier: Apache-2.0
//
// Samples, as columns that are bound to a signature by name.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/data/Column.h"
#include "runtime/data/Source.h"
#include "runtime/plan/Plan.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mtrun {

// The source of each entry of a program's signature.
struct Binding {
  static constexpr int output = -1, absent = -2; // output: not from the data; absent: an optional sample weight
  std::vector<int> columns;                      // index into the dataset's columns, or output or absent
};

} // namespace mtrun

// The struct of mtrun.h's opaque handle, which internal code uses too.
struct mtrun_dataset {
  const mtrun::Plan *plan = nullptr;
  std::vector<mtrun::Column> columns;
  // indices [begin, begin + size) of `chosen`, or of the columns if `chosen` is null; size -1: unknown
  int64_t begin = 0, size = 0;
  std::shared_ptr<const std::vector<int64_t>> chosen; // indices of samples in the columns
  int readers = 1;                                    // number of threads that compute samples
  bool allowNan = false;                              // accept floats that are not finite
  bool groupByLength = false;                         // batches of training have samples of similar lengths
  bool keepDamaged = false; // for predictions only: damaged pictures stay in the data, as rows of zeros
  std::vector<std::pair<int64_t, float>> classWeights; // by label, for the column of sample weights
  // The caller's callback, or null. It writes the fields of all columns, one after another.
  std::shared_ptr<const mtrun::Source> source;
  std::vector<std::string> classNames; // names of the labels 0, 1, ...; empty: the data has no names
  std::vector<std::string> notes;
  std::string changes; // options that change the training data, and that the stored samples do not show

  // Returns the index in the columns of the sample with this index, from 0.
  int64_t sample(int64_t index) const { return chosen ? (*chosen)[static_cast<size_t>(begin + index)] : begin + index; }
  // Finds a column for each input, target and required sample weight of `program`. MT_INVALID: the message names the
  // missing entry.
  mtrun::Status bind(const char *program, mtrun::Binding &binding) const;
};

namespace mtrun {

// Returns the samples [begin, end), which must be inside the data.
std::unique_ptr<mtrun_dataset> sliceOf(const mtrun_dataset &data, int64_t begin, int64_t end);

} // namespace mtrun
