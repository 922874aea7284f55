// SPDX-License-Identifier: Apache-2.0
//
// Implements --trace and --profile.
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

// Parses "FILE" or "FILE:FIRST-LAST", with steps from 1. Without a range: the ten steps after the first `skipped`
// steps, or the last ten steps of a shorter run. `steps`: number of steps of the run; 0: unknown.
TraceRange parseTrace(const std::string &text, int64_t skipped, int64_t steps);
std::string tracePath(const Arguments &arguments);

// A row of a profile.
struct ProfileLine {
  std::string layer, kind, name;
  double computeUs = 0, transferUs = 0, waitUs = 0; // sums over all threads
  double flops = 0, bytes = 0;
};
// Returns a profile as tables. `block`: bytes of the memory in which the peak was measured; 0: the peak comes from a
// GPU's driver.
std::string formatProfile(const mtrun_profile &profile, const std::vector<ProfileLine> &lines, const Peak &peak,
                          int64_t block);

// Starts tracing as the arguments request; call before the first step. Throws.
void startTrace(const Run &run, const Arguments &arguments, int64_t skipped, int64_t steps);
// Writes the trace. If the run ended before the traced steps, it only warns. Throws.
void finishTrace(const Run &run, const Arguments &arguments);
// Returns the profile's tables, or the reason why there is none; "" if no profile was requested.
std::string finishProfile(const Run &run, const Arguments &arguments);

} // namespace mtrun_tool
