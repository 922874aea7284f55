// SPDX-License-Identifier: Apache-2.0
//
// The caller's own samples: arrays in memory, or a callback that writes samples on demand.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/data/Table.h"
#include "runtime/support/status.h"

namespace mtrun {

// A callback that threads of a stream call.
class Source {
public:
  Source(const mtrun_source &source, const Table &table);

  int64_t samples() const { return source_.samples; } // -1: samples come in order until the pass ends
  bool inOrder() const { return source_.samples < 0; }
  int threads() const { return threads_; }
  // Requests request.rows samples. `rows` receives the number of samples; it is smaller only if samples come in order.
  // MT_IO with the callback's message; MT_INVALID: the callback returned another number.
  // request.own_only receives what the callback says.
  Status read(mtrun_request &request, int64_t &rows) const;

private:
  mtrun_source source_;
  int threads_ = 1;
  std::string names_; // names of the fields, for messages
};

// Converts the fields to a table of samples; `arrays`: the samples are in memory. MT_INVALID.
Status openFields(const mtrun_field *fields, int32_t count, int64_t samples, bool arrays, Table &table);

} // namespace mtrun
