// SPDX-License-Identifier: Apache-2.0
//
// The caller's own samples: arrays in memory, or a callback that writes them when they are needed.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/data/Table.h"
#include "runtime/support/status.h"

namespace mtrun {

// A callback, as the threads of a stream call it.
class Source {
public:
  Source(const mtrun_source &source, const Table &table);

  int64_t samples() const { return source_.samples; } // -1: they come in order until the pass ends
  bool inOrder() const { return source_.samples < 0; }
  int threads() const { return threads_; }
  // Asks for request.rows samples. `rows`: how many there were, fewer only in order. MT_IO with the callback's message;
  // MT_INVALID: it says that it wrote another number.
  Status read(mtrun_request request, int64_t &rows) const;

private:
  mtrun_source source_;
  int threads_ = 1;
  std::string names_; // for messages
};

// The fields as a table of samples; `arrays`: they are in memory. MT_INVALID.
Status openFields(const mtrun_field *fields, int32_t count, int64_t samples, bool arrays, Table &table);

} // namespace mtrun
