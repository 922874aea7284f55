// SPDX-License-Identifier: Apache-2.0
//
// Draws curves by epoch as inline SVG, with a legend.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mtrun_tool {

struct Curve {
  std::string name;           // any text
  std::vector<double> values; // a value per epoch; NaN or infinity: no value
  int better = 0;             // 1: higher values are better, -1: lower values are better, 0: unknown
};

struct Chart {
  std::string title, unit; // any text
  std::vector<Curve> curves;
  bool fromZero = false; // the axis begins at 0
};

// `first`: the number of the first epoch. `starts`: the epochs at which the run was resumed.
std::string drawChart(const Chart &chart, int64_t first, const std::vector<int64_t> &starts);

// Formats a number for people: "0.0421", "12,345".
std::string shownNumber(double value);

} // namespace mtrun_tool
