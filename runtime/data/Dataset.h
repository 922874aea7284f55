// SPDX-License-Identifier: Apache-2.0
//
// Samples in memory, as columns that bind to a signature by name.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/abi/status.h"
#include "runtime/data/Idx.h"
#include "runtime/data/Spec.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mtrun {

// One input or target of all samples, kept as the bytes of the file: a quarter of the f32 size, converted batch by
// batch.
struct Column {
  std::string name; // of the signature entry
  mtrun_role role = MTRUN_INPUT;
  mt_dtype dtype = MT_F32; // of what gather writes
  uint64_t elements = 0;   // a sample
  uint64_t rowBytes = 0;   // a sample, as gathered
  IdxArray source;
  float table[256]; // MT_F32: the value of each byte

  // Writes samples rows[0 .. count) one after the other; row i is sample begin + rows[i].
  void gather(int64_t begin, const int64_t *rows, int64_t count, void *out) const;
};

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
  int64_t begin = 0, size = 0; // samples [begin, begin + size) of the columns

  // Finds a column for each input, target and required sample weight of `program`. MT_INVALID names the entry.
  mtrun::Status bind(const char *program, mtrun::Binding &binding) const;
};
