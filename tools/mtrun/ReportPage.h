// SPDX-License-Identifier: Apache-2.0
//
// The page that mtrun train leaves in a run's folder.
#pragma once

#include "tools/mtrun/RunLog.h"

#include <string>
#include <utility>
#include <vector>

namespace mtrun_tool {

struct ReportFacts {
  std::string model, state; // how the run ended, or how far it is
  bool failed = false;
  std::string resume; // the command
  Metrics metrics;
  std::vector<int> better; // of each metric: 1: higher values are, -1: lower ones, 0: it is none
  std::vector<EpochTime> times;
  using Rows = std::vector<std::pair<std::string, std::string>>;
  Rows tiles, memory, configuration; // what, how much
};

std::string reportPage(const ReportFacts &facts);

} // namespace mtrun_tool
