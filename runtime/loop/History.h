// SPDX-License-Identifier: Apache-2.0
//
// The metrics of every epoch as files: {"epoch": [1, 2], "loss": [...], ...}, and CSV with a line an epoch, as RFC 4180
// has it. Epochs count from 1.
#pragma once

#include "runtime/support/status.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mtrun {

struct History {
  const std::vector<std::string> &names; // no two equal, none "epoch"
  std::span<const double> rows;          // names.size() values an epoch
  int64_t firstEpoch = 1;                // of the rows
};

// Not finite: null in JSON, nan or inf in CSV, where a name that a spreadsheet would take for a formula begins with '.
// Each file is replaced as a whole. MT_IO.
Status writeHistoryJson(const std::string &path, const History &history);
Status writeHistoryCsv(const std::string &path, const History &history);

} // namespace mtrun
