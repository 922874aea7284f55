// SPDX-License-Identifier: Apache-2.0
//
// What callbacks decide from epoch to epoch, by Keras' rules. Recall was minimised: early stopping kept the worst
// model.
#include "runtime/loop/Callbacks.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mtrun;

namespace {

const std::vector<MetricColumn> columns = {
    {"loss", false, true}, {"recall", true, false}, {"val_loss", false, true}, {"val_recall", true, false}};

struct CallbacksTest : testing::Test {
  mtrun_loop_options options = mtrun_loop_options_init();
  Callbacks callbacks;
  int64_t epoch = 0;

  std::string open(bool validates = true) { return callbacks.open(options, columns, validates).message(); }
  // An epoch whose values are all the same, or without validation those of training.
  void pass(double value, bool validated = true) {
    std::vector<double> values(validated ? 4 : 2, value);
    callbacks.update(epoch, 10 * (epoch + 1), values);
    ++epoch;
  }
  // The epoch, from 1, after which early stopping ends the run.
  int64_t stopsAfter(const std::vector<double> &values) {
    for (double value : values) {
      pass(value);
      if (callbacks.stops())
        return epoch;
    }
    return 0;
  }
};

} // namespace

TEST(MonitorTest, TheMetricSaysWhichIsBetter) {
  EXPECT_TRUE(Monitor::find("val_recall", columns).higher);
  EXPECT_FALSE(Monitor::find("val_loss", columns).higher);
  EXPECT_FALSE(Monitor::find("val_recall:min", columns).higher);
  EXPECT_TRUE(Monitor::find("loss:max", columns).higher);
  EXPECT_EQ(Monitor::find("loss:max", columns).name, "loss");
  EXPECT_EQ(Monitor::find("nothing:max", columns).index, -1);
  std::vector<MetricColumn> odd = {{"a:max", false, false}};
  EXPECT_FALSE(Monitor::find("a:max", odd).higher); // the name of a metric before all
}

TEST_F(CallbacksTest, EachHasAMonitorOfItsOwn) {
  options.monitor = "loss";
  options.early_patience = options.plateau_patience = 1;
  options.early_monitor = "val_recall";
  options.plateau_monitor = "recall:min";
  ASSERT_EQ(open(), "");
  EXPECT_EQ(callbacks.early()->monitor().name, "val_recall");
  EXPECT_TRUE(callbacks.early()->monitor().higher);
  EXPECT_FALSE(callbacks.plateau()->monitor().higher);
  EXPECT_EQ(callbacks.checkpoints().name, "loss");
}

TEST_F(CallbacksTest, WithoutAMonitor) {
  options.early_patience = 1;
  ASSERT_EQ(open(true), "");
  EXPECT_EQ(callbacks.early()->monitor().name, "val_loss");
  options.early_monitor = "val_acc:max";
  EXPECT_EQ(open(), "monitor of early stopping: expected one of loss, recall, val_loss, val_recall, found val_acc");
  options.early_monitor = "val_recal";
  EXPECT_TRUE(open().ends_with("found val_recal; did you mean val_recall?"));
}

TEST_F(CallbacksTest, EarlyStoppingOfWhatShallRise) {
  options.early_monitor = "val_recall";
  options.early_patience = 2;
  ASSERT_EQ(open(), "");
  EXPECT_EQ(stopsAfter({0.1, 0.2, 0.3, NAN, 0.25}), 5);
  EXPECT_EQ(callbacks.early()->best(), 0.3);
  EXPECT_EQ(callbacks.bestStep(), 30);
}

TEST_F(CallbacksTest, Baseline) {
  double baseline = 0.5;
  options.early_patience = 2;
  options.early_baseline = &baseline;
  ASSERT_EQ(open(), "");
  // The second improves, and stays above the baseline: no epoch that improves ends the run, the next one does.
  EXPECT_EQ(stopsAfter({0.9, 0.8, 0.8}), 3);
}

TEST_F(CallbacksTest, StartFromEpoch) {
  options.early_patience = 1;
  options.early_start_epoch = 3;
  ASSERT_EQ(open(), "");
  EXPECT_EQ(stopsAfter({0.1, 0.2, 0.3, 0.5, 0.6}), 5);
  EXPECT_EQ(callbacks.early()->best(), 0.5);
}

TEST_F(CallbacksTest, EpochsWithoutTheValueDoNotCount) {
  options.early_patience = 1;
  ASSERT_EQ(open(), "");
  pass(0.5);
  for (int i = 0; i < 3; ++i)
    pass(0.9, false);
  EXPECT_FALSE(callbacks.stops());
  EXPECT_FALSE(callbacks.improved());
  pass(0.6);
  EXPECT_TRUE(callbacks.stops());
}

TEST_F(CallbacksTest, ThePlateauHasAMinDeltaOfItsOwn) {
  options.plateau_patience = 1;
  options.early_min_delta = 1; // of early stopping, which there is none of
  ASSERT_EQ(open(), "");
  pass(0.5);
  pass(0.4);
  EXPECT_FALSE(callbacks.reduces());
  pass(0.39995);
  EXPECT_TRUE(callbacks.reduces());
  double delta = 1e-6;
  options.plateau_min_delta = &delta;
  callbacks = {};
  ASSERT_EQ(open(), "");
  pass(0.4);
  pass(0.39995);
  EXPECT_FALSE(callbacks.reduces());
}

TEST_F(CallbacksTest, Cooldown) {
  options.plateau_patience = 1;
  options.plateau_cooldown = 2;
  ASSERT_EQ(open(), "");
  std::vector<bool> reduces;
  for (int i = 0; i < 6; ++i) {
    pass(1);
    reduces.push_back(callbacks.reduces());
  }
  EXPECT_EQ(reduces, (std::vector<bool>{false, true, false, true, false, true}));
}

TEST_F(CallbacksTest, TheBestEpochsFile) {
  options.epoch_best_only = 1;
  options.checkpoint_monitor = "recall";
  ASSERT_EQ(open(), "");
  const std::vector<std::pair<double, bool>> epochs = {{0.5, true}, {0.4, false}, {NAN, false}, {0.6, true}};
  for (auto [value, writes] : epochs) {
    pass(value);
    EXPECT_EQ(callbacks.writesFile(), writes) << value;
  }
}

// Cut after each epoch, and put together again from what a checkpoint keeps: the same decisions.
TEST_F(CallbacksTest, ResumesExactly) {
  double baseline = 0.45;
  options.early_patience = 3;
  options.early_baseline = &baseline;
  options.plateau_patience = 1;
  options.plateau_cooldown = 2;
  options.epoch_best_only = 1;
  const std::vector<double> values = {0.9, 0.95, 0.5, 0.4, 0.6, 0.41, 0.42, 0.43};
  auto decisions = [&](bool cut) {
    std::string text;
    epoch = 0;
    callbacks = {};
    EXPECT_EQ(open(), "");
    for (double value : values) {
      pass(value);
      text += callbacks.stops() ? "S" : callbacks.reduces() ? "R" : "-";
      text += callbacks.writesFile() ? "w" : "";
      if (!cut)
        continue;
      LoopState state;
      callbacks.keep(state);
      callbacks = {};
      EXPECT_EQ(open(), "");
      callbacks.restore(state);
    }
    return text + " " + std::to_string(callbacks.bestStep());
  };
  std::string whole = decisions(false);
  EXPECT_NE(whole.find('S'), std::string::npos) << whole;
  EXPECT_NE(whole.find('R'), std::string::npos) << whole;
  EXPECT_EQ(decisions(true), whole);
}

TEST_F(CallbacksTest, TakesNoNonsense) {
  options.early_patience = 1;
  ASSERT_EQ(open(), "");
  LoopState state;
  for (double number : std::vector<double>{NAN, INFINITY, -5.0, 1e300}) {
    state.callbacks["early_stop"] = {1, 0.5, 0, number, number};
    callbacks.restore(state);
    EXPECT_EQ(callbacks.bestStep(), 0);
  }
}
