// SPDX-License-Identifier: Apache-2.0
//
// Golden parity: from Keras' initial values, through the same batches, to Keras' losses and variables.
// MTC_GOLDEN_DATA names another folder of files, such as one with every element (convert.py --samples 0).
#include "runtime/abi/mtc.h"
#include "runtime/abi/mtrun.h"
#include "test/golden/Batches.h"
#include "test/golden/GoldenFile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int64_t planBatch = 64;

void check(mt_status *status) {
  if (!status)
    return;
  std::string message = mt_status_message(status);
  mt_status_free(status);
  throw std::runtime_error(message);
}

std::string dataFolder() {
  const char *folder = std::getenv("MTC_GOLDEN_DATA");
  return folder ? folder : MTC_SOURCE_DIR "/test/golden/data";
}

struct Free {
  void operator()(mtc_result *result) const { mtc_result_free(result); }
  void operator()(mtrun_plan *plan) const { mtrun_plan_free(plan); }
  void operator()(mtrun_session *session) const { mtrun_session_free(session); }
};
template <typename T> using Owned = std::unique_ptr<T, Free>;

struct Case {
  const char *model, *start, *devices;
};

class Golden : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    std::string model = GetParam().model;
    expected = golden::readFile(dataFolder() + "/" + model + ".golden");
    start = golden::readFile(dataFolder() + "/" + GetParam().start + ".golden");
    mtc_options options = mtc_options_init();
    options.batch = planBatch;
    mtc_result *result = nullptr;
    check(mtc_compile_file((MTC_SOURCE_DIR "/test/golden/models/" + model + ".mlir").c_str(), &options, &result));
    Owned<mtc_result> compiled(result);
    mtrun_plan *loaded = nullptr;
    check(mtrun_plan_load_memory(mtc_result_data(result), mtc_result_size(result), &loaded));
    plan.reset(loaded);
  }

  /// A session that stands where Keras' model stood before its first step.
  Owned<mtrun_session> makeSession() {
    mtrun_options options = mtrun_options_init();
    options.devices = GetParam().devices;
    mtrun_session *created = nullptr;
    check(mtrun_session_create(plan.get(), &options, &created));
    Owned<mtrun_session> session(created);
    for (const golden::Tensor &tensor : start.tensors)
      check(mtrun_set_variable(created, tensor.name.c_str(), tensor.values.data(), tensor.count * sizeof(float)));
    return session;
  }

  struct Measured {
    double loss, accuracy;
  };
  Measured train(mtrun_session *session, int64_t rows, uint32_t seed) {
    golden::Batch batch = golden::makeBatch(rows, seed);
    mtrun_tensor_info info;
    check(mtrun_plan_signature(plan.get(), "train_step", 1, &info));
    const void *tensors[] = {batch.images.data(),
                             info.dtype == MT_F32 ? (const void *)batch.oneHot.data() : batch.labels.data()};
    double values[2];
    mtrun_results results = {values, nullptr, nullptr, nullptr};
    check(mtrun_train_step(session, tensors, rows, &results));
    return {values[0], values[1]};
  }

  std::vector<float> variable(mtrun_session *session, const std::string &name, int64_t count) {
    std::vector<float> values(count);
    static_assert(sizeof(float) == sizeof(int32_t));
    check(mtrun_get_variable(session, name.c_str(), values.data(), count * sizeof(float)));
    for (int32_t i = 0; i < mtrun_plan_variable_count(plan.get()); ++i) {
      mtrun_tensor_info info;
      check(mtrun_plan_variable(plan.get(), i, &info));
      if (info.name == name && info.dtype == MT_I32)
        for (float &value : values) {
          int32_t bits;
          std::memcpy(&bits, &value, sizeof bits);
          value = float(bits);
        }
    }
    return values;
  }

  void compareVariables(mtrun_session *session, const std::string &set, double tolerance) {
    int32_t compared = 0;
    for (const golden::Tensor &tensor : expected.tensors)
      if (tensor.set == set) {
        compare(tensor, variable(session, tensor.name, tensor.count), tolerance, adamOf(tensor));
        ++compared;
      }
    EXPECT_EQ(compared, mtrun_plan_variable_count(plan.get()))
        << "every variable of the plan is one of Keras', and back";
  }

  /// Adam's first step moves a variable by rate * g / (|g| + 3.2e-6) for a gradient g, which magnifies an error in g by
  /// rate / 3.2e-6 where g is near zero: by 16,000 in mlp_onehot. Two correct float32 sums of 64 products differ by
  /// 1e-9.
  struct Adam {
    const golden::Tensor *momentum = nullptr; // a tenth of the gradient after one step
    double rate = 0;

    double slack(size_t i) const {
      constexpr double epsilon = 3.2e-6, gradientError = 1e-9;
      double gradient = momentum ? 10 * std::fabs(momentum->values[i]) : 0;
      return momentum ? gradientError * rate * epsilon / ((gradient + epsilon) * (gradient + epsilon)) : 0;
    }
  };

  Adam adamOf(const golden::Tensor &variable) {
    Adam adam;
    std::string slot = "/" + variable.name + "_momentum";
    std::replace(slot.begin() + 1, slot.end(), '/', '_');
    for (const golden::Tensor &tensor : expected.tensors) {
      if (tensor.set == variable.set && tensor.name.ends_with(slot))
        adam.momentum = &tensor;
      if (tensor.set == variable.set && tensor.name.ends_with("/learning_rate"))
        adam.rate = tensor.values[0];
    }
    return adam;
  }

  /// Each element within `tolerance` and Adam's slack; the means over all elements within `tolerance`.
  static void compare(const golden::Tensor &tensor, const std::vector<float> &found, double tolerance,
                      const Adam &adam) {
    double worst = 0, sum = 0, magnitude = 0;
    int64_t at = 0;
    for (size_t i = 0; i < tensor.values.size(); ++i) {
      double difference = std::fabs(double(found[i * tensor.stride]) - tensor.values[i]) - adam.slack(i);
      if (!(difference <= worst)) { // NaN is the worst
        worst = difference;
        at = i * tensor.stride;
      }
    }
    for (float value : found) {
      sum += value;
      magnitude += std::fabs(value);
    }
    EXPECT_LE(worst, tolerance) << tensor.set << " " << tensor.name << " element " << at << ": expected "
                                << tensor.values[at / tensor.stride] << ", found " << found[at];
    EXPECT_NEAR(sum / tensor.count, tensor.sum / tensor.count, tolerance)
        << tensor.set << " " << tensor.name << ": mean";
    EXPECT_NEAR(magnitude / tensor.count, tensor.magnitude / tensor.count, tolerance)
        << tensor.set << " " << tensor.name << ": mean magnitude";
  }

  golden::File expected, start;
  Owned<mtrun_plan> plan;
};

TEST_P(Golden, WholeRun) {
  Owned<mtrun_session> session = makeSession();
  for (size_t i = 0; i < expected.steps.size(); ++i) {
    const golden::Step &step = expected.steps[i];
    Measured found = train(session.get(), step.rows, 1000 + i);
    EXPECT_NEAR(found.loss, step.loss, 1e-5 * std::fabs(step.loss)) << "loss of step " << i;
    EXPECT_NEAR(found.accuracy, step.accuracy, 1e-6) << "accuracy of step " << i;
    if (i == 0)
      compareVariables(session.get(), "after1", 1e-6);
  }
  compareVariables(session.get(), "after", 1e-4);

  const int64_t rows = 16;
  golden::Batch batch = golden::makeBatch(rows, 5);
  const auto output = std::find_if(expected.tensors.begin(), expected.tensors.end(),
                                   [](const golden::Tensor &tensor) { return tensor.set == "predict"; });
  ASSERT_NE(output, expected.tensors.end());
  std::vector<float> found(output->count);
  void *tensors[] = {batch.images.data(), found.data()};
  check(mtrun_predict(session.get(), tensors, rows));
  compare(*output, found, 1e-3, Adam());
}

TEST_P(Golden, ShortStep) {
  Owned<mtrun_session> session = makeSession();
  size_t last = expected.steps.size() - 1;
  ASSERT_LT(expected.steps[last].rows, planBatch);
  train(session.get(), expected.steps[last].rows, 1000 + last);
  compareVariables(session.get(), "short1", 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Keras, Golden,
                         testing::Values(Case{"mlp", "start_mlp", "cpu:2"}, Case{"mlp_sgd", "start_mlp", "cpu:3"},
                                         Case{"mlp_adamw", "start_mlp", "cpu:1"},
                                         Case{"mlp_softmax", "start_softmax", "cpu:8"},
                                         Case{"mlp_onehot", "start_softmax", "cpu:2"}),
                         [](const testing::TestParamInfo<Case> &info) { return std::string(info.param.model); });

} // namespace
