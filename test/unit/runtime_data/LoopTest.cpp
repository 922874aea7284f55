// SPDX-License-Identifier: Apache-2.0
#include "Fixtures.h"
#include "runtime/loop/Means.h"

#include <cmath>
#include <gtest/gtest.h>
#include <pthread.h>

using namespace fixtures;

namespace {

struct Call {
  int64_t epoch, step, steps;
  int32_t metrics;
  bool validation, end;
  bool operator==(const Call &) const = default;
};

class Loop : public testing::Test {
protected:
  void SetUp() override {
    writeSmallMnist(folder, std::string("\0\1\2\3\0\1\2", 7));
    data = openData(plan.get(), "mnist:" + folder.path());
    session = nullSession(plan.get());
    options.progress = record;
    options.progress_user = this;
  }
  static int record(void *user, const mtrun_progress *p) {
    auto *self = static_cast<Loop *>(user);
    self->calls.push_back({p->epoch, p->step, p->steps, p->metrics, p->validation != 0, p->epoch_end != 0});
    self->names.assign(p->names, p->names + p->metrics);
    return static_cast<int64_t>(self->calls.size()) == self->stopAfter;
  }

  TempFolder folder;
  Owned<mtrun_plan> plan = emptyPlan(4);
  Owned<mtrun_dataset> data;
  Owned<mtrun_session> session;
  mtrun_loop_options options = mtrun_loop_options_init();
  std::vector<Call> calls;
  std::vector<std::string> names;
  int64_t stopAfter = -1;
};

} // namespace

TEST(Means, WeighSteps) {
  mtrun::Means means(2, 2, [](size_t metric, const double *sums, const double *weights) {
    return weights[metric] == 0 ? 0 : sums[metric] / weights[metric];
  });
  for (int step = 0; step < 3; ++step) {
    mtrun_results *results = means.results();
    results->values[0] = step == 2 ? NAN : step; // the last step weighs nothing
    results->weights[0] = step == 2 ? 0 : step == 1 ? 1 : 3;
    results->sums[0] = step == 2 ? 0 : results->values[0] * results->weights[0];
    results->sums[1] = results->values[1] = 0.5;
    results->weights[1] = 1;
    means.add();
  }
  EXPECT_EQ(means.means(), (std::vector<double>{0.25, 0.5}));
  means.reset();
  EXPECT_EQ(means.means(), (std::vector<double>{0, 0}));
}

TEST_F(Loop, FitReportsSteps) {
  options.epochs = 2;
  ASSERT_EQ(text(mtrun_fit(session.get(), data.get(), &options)), "0");
  EXPECT_EQ(calls, (std::vector<Call>{{0, 1, 2, 2, false, false},
                                      {0, 2, 2, 2, false, true},
                                      {1, 1, 2, 2, false, false},
                                      {1, 2, 2, 2, false, true}}));
  EXPECT_EQ(names, (std::vector<std::string>{"loss", "accuracy"}));
}

TEST_F(Loop, FitValidates) {
  options.validation = data.get();
  ASSERT_EQ(text(mtrun_fit(session.get(), data.get(), &options)), "0");
  EXPECT_EQ(calls,
            (std::vector<Call>{{0, 1, 2, 2, false, false}, {0, 2, 2, 2, false, false}, {0, 2, 2, 4, true, true}}));
  EXPECT_EQ(names, (std::vector<std::string>{"loss", "accuracy", "val_loss", "val_accuracy"}));
}

// The tables of a plan may lack the vector of metrics altogether.
TEST_F(Loop, RunsAPlanWithoutMetrics) {
  plan = emptyPlan(4, /*scheduled=*/false, /*metrics=*/false);
  data = openData(plan.get(), "mnist:" + folder.path());
  session = nullSession(plan.get());
  options.validation = data.get();
  EXPECT_EQ(text(mtrun_fit(session.get(), data.get(), &options)), "0");
  EXPECT_EQ(calls.size(), 3u);
  EXPECT_EQ(text(mtrun_evaluate(session.get(), data.get(), &options, nullptr)), "0");
  mtrun_timing timing = {};
  EXPECT_EQ(text(mtrun_benchmark(session.get(), 4, 1, 2, &timing)), "0");
}

// Host programs run threads with small stacks; frames of sanitized code are larger.
#if !defined(__has_feature)
#define __has_feature(x) 0
#endif
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
TEST_F(Loop, FitsOnAThreadOf64KiB) {
  options.validation = data.get();
  options.epochs = 2;
  std::string history = folder.path("history.json"), table = folder.path("history.csv");
  options.history_json = history.c_str();
  options.history_csv = table.c_str();
  using Test = std::remove_pointer_t<decltype(this)>;
  struct Host {
    Test *test;
    std::string result;
  } host{this, ""};
  auto run = [](void *argument) -> void * {
    auto &host = *static_cast<Host *>(argument);
    Test &test = *host.test;
    host.result = text(mtrun_fit(test.session.get(), test.data.get(), &test.options));
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_t thread;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 64 << 10), 0);
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &host), 0);
  pthread_attr_destroy(&attributes);
  pthread_join(thread, nullptr);
  EXPECT_EQ(host.result, "0");
  EXPECT_EQ(calls.size(), 6u);
}
#endif

TEST_F(Loop, FitStops) {
  options.epochs = 1000000;
  stopAfter = 3;
  ASSERT_EQ(text(mtrun_fit(session.get(), data.get(), &options)), "0");
  EXPECT_EQ(calls.size(), 3u);
}

TEST_F(Loop, FitRefuses) {
  EXPECT_EQ(text(mtrun_fit(nullptr, data.get(), &options)), "1: fit: expected a session and a dataset, found NULL");
  options.epochs = -1;
  EXPECT_EQ(text(mtrun_fit(session.get(), data.get(), &options)), "1: expected epochs of at least 0, found -1");
  options.epochs = 1;
  options.drop_remainder = 1;
  Owned<mtrun_dataset> three = openData(plan.get(), "mnist:" + folder.path() + ",range=0:3");
  EXPECT_EQ(text(mtrun_fit(session.get(), three.get(), &options)),
            "1: dropping the remainder leaves no step: expected at least 4 samples, found 3");
  Owned<mtrun_plan> other = emptyPlan(4);
  Owned<mtrun_dataset> foreign = openData(other.get(), "mnist:" + folder.path());
  EXPECT_EQ(text(mtrun_fit(session.get(), foreign.get(), &options)),
            "1: the dataset was opened for another plan than the session's");
}

// A run that goes on holds out what it held out before, although the caller names no seed.
TEST_F(Loop, FitHoldsOut) {
  options.validation_split = 0.5;
  ASSERT_EQ(text(mtrun_fit(session.get(), data.get(), &options)), "0");
  EXPECT_EQ(names, (std::vector<std::string>{"loss", "accuracy", "val_loss", "val_accuracy"}));
  EXPECT_EQ(calls.front().steps, 1); // of 3 samples
  options.validation = data.get();
  EXPECT_EQ(text(mtrun_fit(session.get(), data.get(), &options)),
            "1: expected either validation data or a validation split of the training data, found both");
  options.validation = nullptr;
  options.validation_split = 0.99;
  EXPECT_EQ(
      text(mtrun_fit(session.get(), data.get(), &options)),
      "1: validation split: expected at least 1 sample to train on and 1 to validate on, found 0 and 7: the share "
      "is 0.99 of 7");
}

// Labels out of range once counted as the nearest class, through the C API too.
TEST_F(Loop, StepsLookAtIntegers) {
  plan = emptyPlan(4, false, true, 3);
  session = nullSession(plan.get());
  float image[4 * 6] = {};
  int32_t label[4] = {0, 2, 1000000000, -1};
  const void *tensors[] = {image, label};
  EXPECT_EQ(text(mtrun_train_step(session.get(), tensors, 2, nullptr)), "0");
  EXPECT_EQ(text(mtrun_train_step(session.get(), tensors, 4, nullptr)),
            "1: train_step: \"label\": row 2 has 1000000000, expected 0 to 2");
  label[2] = 0;
  EXPECT_EQ(text(mtrun_eval_step(session.get(), tensors, 4, nullptr)),
            "1: eval_step: \"label\": row 3 has -1, expected 0 to 2");
  EXPECT_EQ(text(mtrun_eval_step(session.get(), tensors, 5, nullptr)).substr(0, 2), "1:"); // of the rows
  mtrun_options unchecked = mtrun_options_init();
  unchecked.devices = "null:1";
  unchecked.unchecked_ids = 1;
  mtrun_session *other = nullptr;
  ASSERT_EQ(text(mtrun_session_create(plan.get(), &unchecked, &other)), "0");
  session.reset(other);
  EXPECT_EQ(text(mtrun_eval_step(session.get(), tensors, 4, nullptr)), "0");
  mtrun_dataset *refused = nullptr;
  EXPECT_EQ(text(mtrun_dataset_open(plan.get(), ("mnist:" + folder.path()).c_str(), &refused)),
            "1: " + folder.path("train-labels-idx1-ubyte") + ": sample 3 has label 3, expected 0 to 2");
}

// Ids that a model takes as floats, as Keras' inputs are without a dtype, were not looked at.
TEST_F(Loop, StepsLookAtIdsOfFloats) {
  plan = emptyPlan(4, false, true, -1, 5);
  session = nullSession(plan.get());
  float ids[4 * 6] = {0, 4.5f, -0.5f};
  int32_t label[4] = {};
  const void *tensors[] = {ids, label};
  EXPECT_EQ(text(mtrun_train_step(session.get(), tensors, 4, nullptr)), "0");
  for (auto [wrong, shown] : {std::pair(5.0f, "5"), {-1.0f, "-1"}, {2.5e9f, "2.5e+09"}, {NAN, "nan"}}) {
    ids[13] = wrong;
    EXPECT_EQ(text(mtrun_train_step(session.get(), tensors, 4, nullptr)),
              "1: train_step: \"image\": row 2 has " + std::string(shown) + ", expected 0 to 4");
  }
}

TEST_F(Loop, Evaluate) {
  double values[2] = {-1, -1};
  ASSERT_EQ(text(mtrun_evaluate(session.get(), data.get(), &options, values)), "0");
  EXPECT_EQ(calls, (std::vector<Call>{{0, 1, 2, 2, false, false}, {0, 2, 2, 2, false, true}}));
  EXPECT_GE(values[0], 0);
}

TEST_F(Loop, PredictFile) {
  std::string path = folder.path("p.npy");
  ASSERT_EQ(text(mtrun_predict_file(session.get(), data.get(), 0, path.c_str())), "0");
  std::string file = readFile(path);
  EXPECT_EQ(file.size(), 128u + 7 * 4 * 4);
  EXPECT_NE(file.find("'shape': (7, 4)"), std::string::npos);
  EXPECT_EQ(text(mtrun_predict_file(session.get(), data.get(), 1, path.c_str())),
            "1: predict: expected an output index below 1, found 1");
  EXPECT_EQ(text(mtrun_predict_file(session.get(), data.get(), 0, folder.path("p.txt").c_str())),
            "1: predict: expected a file .csv, .npz or .npy, found " + folder.path("p.txt"));
  std::string missing = folder.path("none/p.npy");
  EXPECT_EQ(text(mtrun_predict_file(session.get(), data.get(), 0, missing.c_str())),
            "7: cannot create " + missing + ": No such file or directory");
}

TEST_F(Loop, Benchmark) {
  mtrun_timing timing = {};
  ASSERT_EQ(text(mtrun_benchmark(session.get(), 4, 2, 5, &timing)), "0");
  EXPECT_EQ(timing.steps, 5);
  EXPECT_LE(timing.min_us, timing.median_us);
  EXPECT_GT(timing.first_step_us, 0);
  EXPECT_EQ(text(mtrun_benchmark(session.get(), 5, 2, 5, &timing)), "1: benchmark: expected 1 to 4 rows, found 5");
  EXPECT_EQ(text(mtrun_benchmark(session.get(), 4, 0, 0, &timing)),
            "1: benchmark: expected at least 1 step and 0 steps of warm-up, found 0 and 0");
}
