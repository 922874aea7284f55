// SPDX-License-Identifier: Apache-2.0
//
// --trace and --profile: what is taken down of a run, and where it goes.
#pragma once

#include "tools/mtrun/Peak.h"
#include "tools/mtrun/Run.h"

#include <string>
#include <vector>

namespace mtrun_tool {

struct TraceRange {
  std::string path; // empty: no trace
  int64_t first = 0, last = 0;
};

// "FILE" or "FILE:FIRST-LAST", steps from 1; without a range the ten after `skipped` steps, or of a run of fewer steps
// the last ten. `steps`: of the run; 0: not known.
TraceRange parseTrace(const std::string &text, int64_t skipped, int64_t steps);
std::string tracePath(const Arguments &arguments);

// What a profile says, as a table.
struct ProfileLine {
  std::string layer, kind, name;
  double computeUs = 0, transferUs = 0, waitUs = 0; // all threads together
  double flops = 0, bytes = 0;
};
// `block`: bytes that the peak was measured in; 0: it is what a GPU's driver tells.
std::string formatProfile(const mtrun_profile &profile, const std::vector<ProfileLine> &lines, const Peak &peak,
                          int64_t block);

// Begins what the arguments ask for, before the first step. Throws.
void startTrace(const Run &run, const Arguments &arguments, int64_t skipped, int64_t steps);
// Writes the trace; that the run ended before its steps is a warning. Throws.
void finishTrace(const Run &run, const Arguments &arguments);
// The profile's table, or why there is none; "" if it was not asked for.
std::string finishProfile(const Run &run, const Arguments &arguments);

} // namespace mtrun_tool
