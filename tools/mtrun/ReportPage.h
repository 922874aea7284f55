// SPDX-License-Identifier: Apache-2.0
//
// The page report.html that mtrun train writes into a run's folder.
#pragma once

#include "tools/mtrun/RunLog.h"

#include <string>
#include <utility>
#include <vector>

namespace mtrun_tool {

struct ReportFacts {
  std::string model, state; // state: how the run ended, or its progress
  bool failed = false;
  std::string resume; // the command that resumes the run
  Metrics metrics;
  std::vector<int> better; // by metric: 1: higher values are better, -1: lower values are better, 0: not a metric
  std::vector<EpochTime> times;
  using Rows = std::vector<std::pair<std::string, std::string>>;
  Rows tiles, memory, configuration; // pairs of name and value
};

std::string reportPage(const ReportFacts &facts);

} // namespace mtrun_tool
