// SPDX-License-Identifier: Apache-2.0
//
// Writes the metrics of every epoch as JSON, {"epoch": [1, 2], "loss": [...], ...}, and as CSV with a line per epoch
// (RFC 4180). Epochs count from 1.
#pragma once

#include "runtime/support/status.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mtrun {

struct History {
  const std::vector<std::string> &names; // unique names; none is "epoch"
  std::span<const double> rows;          // names.size() values per epoch
  int64_t firstEpoch = 1;                // the epoch of the first row
};

// Values that are not finite are null in JSON, and nan or inf in CSV. In CSV an apostrophe precedes a name that a
// spreadsheet would take for a formula. Each write replaces the complete file. MT_IO.
Status writeHistoryJson(const std::string &path, const History &history);
Status writeHistoryCsv(const std::string &path, const History &history);

} // namespace mtrun
