// SPDX-License-Identifier: Apache-2.0
//
// Samples, as columns that bind to a signature by name.
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

// Where each entry of a program's signature comes from.
struct Binding {
  static constexpr int output = -1, absent = -2; // not from the data; an optional sample weight
  std::vector<int> columns;                      // index into Dataset columns, or one of the above
};

} // namespace mtrun

// What stands behind the opaque handle of mtrun.h, and the same thing inside.
struct mtrun_dataset {
  const mtrun::Plan *plan = nullptr;
  std::vector<mtrun::Column> columns;
  int64_t begin = 0, size = 0; // indices [begin, begin + size) of `chosen`, or without it of the columns; -1: unknown
  std::shared_ptr<const std::vector<int64_t>> chosen; // samples of the columns
  int readers = 1;                                    // threads that make samples
  bool allowNan = false;                              // values of floats that are not finite may pass
  bool groupByLength = false;                         // batches of training have samples of similar lengths
  bool keepDamaged = false; // damaged pictures have their rows, of zeros: of predictions alone
  std::vector<std::pair<int64_t, float>> classWeights; // by label, of the column of weights
  // The caller's callback, or null: it writes the fields of the columns, one after the other.
  std::shared_ptr<const mtrun::Source> source;
  std::vector<std::string> classNames; // of the labels 0, 1, ...; empty: the data has none
  std::vector<std::string> notes;
  std::string changes; // options that change what is trained on, and that a sample as it is stored does not show

  // Which sample of the columns is the one with this index, from 0.
  int64_t sample(int64_t index) const { return chosen ? (*chosen)[static_cast<size_t>(begin + index)] : begin + index; }
  // Finds a column for each input, target and required sample weight of `program`. MT_INVALID names the entry.
  mtrun::Status bind(const char *program, mtrun::Binding &binding) const;
};

namespace mtrun {

// Samples [begin, end), which lie within the data.
std::unique_ptr<mtrun_dataset> sliceOf(const mtrun_dataset &data, int64_t begin, int64_t end);

} // namespace mtrun
