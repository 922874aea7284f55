// SPDX-License-Identifier: Apache-2.0
//
// report.html and timing.csv of a run's folder, kept up to date while mtrun train runs.
#pragma once

#include "tools/mtrun/Outputs.h"
#include "tools/mtrun/ReportPage.h"
#include "tools/mtrun/Run.h"

#include <string>
#include <vector>

namespace mtrun_tool {

// The command that goes on with a run in `folder`: that of `words`, with other options of where it begins.
std::string resumeCommand(const std::vector<std::string> &words, const std::string &folder, bool complete);

// What goes wrong with a file is a warning: a run of hours does not end for a report.
class Report {
public:
  // Without a folder of the run, nothing is written. `samples`: of the data to train on; -1: not known.
  Report(const Run &run, const Arguments &arguments, const Outputs &outputs, int64_t samples);
  // Writes the page at the first step, and at the first step after an epoch: the history is written by then. Runs of
  // short epochs write it less often, so that it takes 2 % of their time at most.
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
  int64_t epoch_ = -1, epochs_ = 0, complete_ = 0, firstStep_ = 0; // under way, in all, done; steps done when it began
  double training_ = 0;                                            // seconds of the epoch without validation
  double lastWrite_ = 0, writeTook_ = 0;                           // seconds
};

} // namespace mtrun_tool
