// SPDX-License-Identifier: Apache-2.0
//
// A chart of curves by epoch, as inline SVG with its legend.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mtrun_tool {

struct Curve {
  std::string name;           // any text
  std::vector<double> values; // an epoch each; not finite: none there
  int better = 0;             // 1: higher values are, -1: lower ones, 0: nobody says
};

struct Chart {
  std::string title, unit; // any text
  std::vector<Curve> curves;
  bool fromZero = false; // an amount, whose axis begins at 0
};

// `first`: the number of the first epoch. `starts`: epochs at which the run was started again.
std::string drawChart(const Chart &chart, int64_t first, const std::vector<int64_t> &starts);

// A number for people: "0.0421", "12,345".
std::string shownNumber(double value);

} // namespace mtrun_tool
