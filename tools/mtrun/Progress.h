// SPDX-License-Identifier: Apache-2.0
//
// Keras' progress lines: the moving bar on a terminal (its verbose=1), one line an epoch elsewhere (verbose=2).
#pragma once

#include "runtime/abi/mtrun.h"

#include <cstdint>
#include <string>

namespace mtrun_tool {

// " 10ms/step".
std::string formatStepTime(double seconds);
// " - accuracy: 0.5500 - loss: 1.2295": training names sorted, then validation names sorted.
std::string formatMetrics(const mtrun_progress &progress);
// {"epoch": 1, "epochs": 2, "steps": 3, "seconds": 0.1, "loss": ...} and a newline. Of a step: "step" and "total_step",
// this step's values and its learning rate.
std::string formatJson(const mtrun_progress &progress);
std::string formatJsonStep(const mtrun_progress &progress);

enum class ProgressStyle { Bar, Line, Json };

class Progress {
public:
  explicit Progress(ProgressStyle style) : style_(style) {}

  // What to print for this call of a loop; often nothing.
  std::string update(const mtrun_progress &progress);

private:
  std::string bar(const mtrun_progress &progress, double stepSeconds);

  ProgressStyle style_;
  int64_t epoch_ = -1, firstStep_ = 0; // the epoch under way; the step that it began with, after 1 in a resumed run
  double afterFirstStep_ = 0;          // seconds into the epoch
  double lastDrawn_ = 0;
  int64_t jsonStep_ = 0; // the last step that was written
  int64_t lastWidth_ = 0;
};

struct Arguments;
Progress makeProgress(const Arguments &arguments);
// The progress callback of loops; `user` is a Progress.
int showProgress(void *user, const mtrun_progress *progress);

} // namespace mtrun_tool
