// SPDX-License-Identifier: Apache-2.0
//
// The metrics of every epoch as files: {"epoch": [1, 2], "loss": [...], ...}, and CSV with a line an epoch. Epochs
// count from 1.
#pragma once

#include "runtime/abi/status.h"

#include <span>
#include <string>
#include <vector>

namespace mtrun {

// `rows`: names.size() values an epoch. Not finite: null in JSON, nan or inf in CSV. Each file is replaced as a whole.
// MT_IO.
Status writeHistoryJson(const std::string &path, const std::vector<std::string> &names, std::span<const double> rows);
Status writeHistoryCsv(const std::string &path, const std::vector<std::string> &names, std::span<const double> rows);

} // namespace mtrun
