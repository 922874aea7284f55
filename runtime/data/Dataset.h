// SPDX-License-Identifier: Apache-2.0
//
// Samples, as columns that bind to a signature by name.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/abi/status.h"
#include "runtime/data/Column.h"
#include "runtime/data/Source.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mtrun {

// Where each entry of a program's signature comes from.
struct Binding {
  static constexpr int kOutput = -1, kAbsent = -2; // not from the data; an optional sample weight
  std::vector<int> columns;                        // index into Dataset columns, or one of the above
};

} // namespace mtrun

// The opaque handle of mtrun.h.
struct mtrun_dataset {
  const mtrun_plan *plan = nullptr;
  std::vector<mtrun::Column> columns;
  int64_t begin = 0, size = 0; // samples [begin, begin + size) of the columns; size -1: unknown
  int readers = 1;             // threads that make samples
  // The caller's callback, or null: it writes the fields of the columns, one after the other.
  std::shared_ptr<const mtrun::Source> source;
  std::vector<std::string> notes;

  // Finds a column for each input, target and required sample weight of `program`. MT_INVALID names the entry.
  mtrun::Status bind(const char *program, mtrun::Binding &binding) const;
};
