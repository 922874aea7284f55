// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Progress.h"
#include "runtime/support/json_text.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mtrun_tool;

namespace {

const char *const metricNames[] = {"loss", "accuracy", "val_loss", "val_accuracy"};
const double metricValues[] = {1.22949, 0.55, 0.85292, 0.5};

mtrun_progress at(int64_t step, int64_t steps, double seconds, bool validation = false) {
  mtrun_progress p = {};
  p.epochs = 2;
  p.step = step;
  p.steps = steps;
  p.seconds = seconds;
  p.metrics = validation ? 4 : 2;
  p.names = metricNames;
  p.values = metricValues;
  p.validation = validation;
  p.epoch_end = step == steps;
  return p;
}

} // namespace

TEST(ProgressLine, StepTime) {
  EXPECT_EQ(formatStepTime(0), " 0s/step");
  EXPECT_EQ(formatStepTime(12.4), " 12s/step");
  EXPECT_EQ(formatStepTime(0.0104), " 10ms/step");
  EXPECT_EQ(formatStepTime(0.000321), " 321us/step");
}

TEST(ProgressLine, Metrics) {
  EXPECT_EQ(formatMetrics(at(3, 3, 0)), " - accuracy: 0.5500 - loss: 1.2295");
  EXPECT_EQ(formatMetrics(at(3, 3, 0, true)),
            " - accuracy: 0.5500 - loss: 1.2295 - val_accuracy: 0.5000 - val_loss: 0.8529");
  const double small[] = {0.00012345, -NAN};
  mtrun_progress p = at(3, 3, 0);
  p.values = small;
  EXPECT_EQ(formatMetrics(p), " - accuracy: nan - loss: 1.2345e-04");
}

TEST(ProgressLine, OneLineAnEpoch) {
  Progress progress(ProgressStyle::Line);
  EXPECT_EQ(progress.update(at(1, 3, 0.010)), "Epoch 1/2\n");
  EXPECT_EQ(progress.update(at(2, 3, 0.020)), "");
  mtrun_progress last = at(3, 3, 0.030, true);
  EXPECT_EQ(progress.update(last),
            "3/3 - 0s - 10ms/step - accuracy: 0.5500 - loss: 1.2295 - val_accuracy: 0.5000 - val_loss: 0.8529\n");
}

TEST(ProgressLine, SingleEpochHasNoTitle) {
  Progress progress(ProgressStyle::Line);
  mtrun_progress only = at(1, 1, 2.6);
  only.epochs = 1;
  EXPECT_EQ(progress.update(only), "1/1 - 3s - 3s/step - accuracy: 0.5500 - loss: 1.2295\n");
}

TEST(ProgressLine, Bar) {
  Progress progress(ProgressStyle::Bar);
  EXPECT_EQ(
      progress.update(at(1, 10, 1.0)),
      "Epoch 1/2\n\r\x1b[1m 1/10\x1b[0m \x1b[32m━━\x1b[0m\x1b[37m━━━━━━━━━━━━━━━━━━\x1b[0m \x1b[1m9s\x1b[0m 1s/step"
      " - accuracy: 0.5500 - loss: 1.2295");
  EXPECT_EQ(progress.update(at(2, 10, 1.01)), ""); // redrawn at most every 50 ms
  EXPECT_EQ(progress.update(at(5, 10, 1.8)),
            "\r\x1b[1m 5/10\x1b[0m \x1b[32m━━━━━━━━━━\x1b[0m\x1b[37m━━━━━━━━━━\x1b[0m \x1b[1m1s\x1b[0m 200ms/step"
            " - accuracy: 0.5500 - loss: 1.2295");
  EXPECT_EQ(progress.update(at(10, 10, 1.81)),
            "\r\x1b[1m10/10\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m2s\x1b[0m 90ms/step"
            " - accuracy: 0.5500 - loss: 1.2295 \n"); // a blank wipes the longer line before it
}

TEST(ProgressLine, LongTimes) {
  Progress progress(ProgressStyle::Bar);
  EXPECT_NE(progress.update(at(1, 101, 1.0)).find("\x1b[1m1:40\x1b[0m"), std::string::npos);
  EXPECT_NE(progress.update(at(2, 101, 60.0)).find("\x1b[1m1:37:21\x1b[0m"), std::string::npos);
}

TEST(ProgressLine, Json) {
  Progress progress(ProgressStyle::Json);
  EXPECT_EQ(progress.update(at(1, 2, 0.25)), "");
  EXPECT_EQ(progress.update(at(2, 2, 0.5)), "{\"epoch\": 1, \"epochs\": 2, \"steps\": 2, \"seconds\": 0.5, "
                                            "\"accuracy\": 0.55000000000000004, \"loss\": 1.22949}\n");
  EXPECT_EQ(mtrun::jsonNumber(INFINITY), "null");
  EXPECT_EQ(mtrun::jsonString("a\"b\n"), "\"a\\\"b\\n\"");
  EXPECT_EQ(mtrun::jsonString("\x01\xc3\xa9\xff"), "\"\\u0001\xc3\xa9\xef\xbf\xbd\"");
}

TEST(ProgressLine, JsonSteps) {
  Progress progress(ProgressStyle::Json);
  mtrun_progress p = at(1, 2, 0.5);
  const double values[] = {2, 0.25};
  p.step_values = values;
  p.learning_rate = NAN;
  p.total_step = 7;
  EXPECT_EQ(progress.update(p),
            "{\"epoch\": 1, \"step\": 1, \"total_step\": 7, \"seconds\": 0.5, \"learning_rate\": null, "
            "\"accuracy\": 0.25, \"loss\": 2}\n");
  EXPECT_EQ(progress.update(p), ""); // the same step again: the epoch's end after a validation
}

TEST(ProgressLine, AResumedEpochHasItsHeader) {
  Progress progress(ProgressStyle::Line);
  EXPECT_EQ(progress.update(at(3, 4, 0.5)), "Epoch 1/2\n");
  EXPECT_EQ(progress.update(at(4, 4, 0.75)), "4/4 - 1s - 250ms/step - accuracy: 0.5500 - loss: 1.2295\n");
}
