// SPDX-License-Identifier: Apache-2.0
//
// Progress lines in Keras' format: a moving bar on a terminal (verbose=1), otherwise one line per epoch (verbose=2).
#pragma once

#include "runtime/abi/mtrun.h"

#include <cstdint>
#include <string>

namespace mtrun_tool {

// Returns a text such as " 10ms/step".
std::string formatStepTime(double seconds);
// Returns " - accuracy: 0.5500 - loss: 1.2295": sorted metrics of training, then sorted metrics of validation.
std::string formatMetrics(const mtrun_progress &progress);
// Returns {"epoch": 1, "epochs": 2, "steps": 3, "seconds": 0.1, "loss": ...} and a newline. formatJsonStep() has "step"
// and "total_step", the step's values and its learning rate.
std::string formatJson(const mtrun_progress &progress);
std::string formatJsonStep(const mtrun_progress &progress);

enum class ProgressStyle { Bar, Line, Json };

class Progress {
public:
  explicit Progress(ProgressStyle style) : style_(style) {}

  // Returns the text to print for this call; often "".
  std::string update(const mtrun_progress &progress);

private:
  std::string bar(const mtrun_progress &progress, double stepSeconds);

  ProgressStyle style_;
  // epoch_: the current epoch; firstStep_: the step after which it began, above 1 in a resumed run
  int64_t epoch_ = -1, firstStep_ = 0;
  double afterFirstStep_ = 0; // seconds since the begin of the epoch
  double lastDrawn_ = 0;
  int64_t jsonStep_ = 0; // the last step that was printed
  int64_t lastWidth_ = 0;
};

struct Arguments;
Progress makeProgress(const Arguments &arguments);
// The progress callback of loops; `user` is a Progress.
int showProgress(void *user, const mtrun_progress *progress);

} // namespace mtrun_tool
