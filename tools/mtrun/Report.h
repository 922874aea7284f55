// SPDX-License-Identifier: Apache-2.0
//
// Writes report.html and timing.csv into a run's folder during mtrun train.
#pragma once

#include "tools/mtrun/Outputs.h"
#include "tools/mtrun/ReportPage.h"
#include "tools/mtrun/Run.h"

#include <string>
#include <vector>

namespace mtrun_tool {

// Returns the command that resumes a run in `folder`: `words` with other options for where it begins.
std::string resumeCommand(const std::vector<std::string> &words, const std::string &folder, bool complete);

// An error of a file is only a warning: a run of hours does not end because of a report.
class Report {
public:
  // Without a folder of the run, nothing is written. `samples`: number of training samples; -1: unknown.
  Report(const Run &run, const Arguments &arguments, const Outputs &outputs, int64_t samples);
  // Writes the page at the first step, and at the first step after each epoch, when the history has been written. If
  // epochs are short, the page is written less often, so that it takes at most 2 % of the time.
  void update(const mtrun_progress &progress);
  void end(const mtrun_fit_result &result);
  void fail(const std::string &message);

private:
  void begin(const mtrun_progress &progress);
  void endEpoch(const mtrun_progress &progress);
  void write(const std::string &state, bool failed = false, bool complete = false);
  ReportFacts facts() const;
  void warn(const std::string &problem);

  const Run &run_;
  const Arguments &arguments_;
  std::string folder_, history_, began_;
  int64_t samples_;
  std::vector<EpochTime> times_;
  bool begun_ = false, due_ = false, warned_ = false;
  // current epoch; total; completed; steps completed before the current epoch
  int64_t epoch_ = -1, epochs_ = 0, complete_ = 0, firstStep_ = 0;
  double training_ = 0;                  // seconds of the epoch without validation
  double lastWrite_ = 0, writeTook_ = 0; // seconds
};

} // namespace mtrun_tool
