// SPDX-License-Identifier: Apache-2.0
//
// Every model of test/keras/data (make.py made them with Keras): its plan starts where Keras' model stood, predicts
// what it predicts, and a step leads where its step leads, with its loss and metrics. MTC_KERAS_DATA names another
// folder of such models. Elements differ by 1e-5 at most, of the value or of 1 where that is larger; where a file has a
// tensor `tolerance`, by that part of the largest element of their tensor (and a hundredth of the largest of all of
// its kind, so that a gradient that vanishes is not compared with its own rounding).
#include "runtime/abi/mtc.h"
#include "runtime/abi/mtrun.h"
#include "runtime/abi/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>

namespace {

constexpr int64_t kBatch = 8;

std::string dataFolder() {
  const char *folder = std::getenv("MTC_KERAS_DATA");
  return folder ? folder : MTC_SOURCE_DIR "/test/keras/data";
}

std::vector<std::string> modelNames() {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(dataFolder()))
    if (entry.path().extension() == ".keras")
      names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

void check(mt_status *status) {
  if (!status)
    return;
  std::string message = mt_status_message(status);
  mt_status_free(status);
  throw std::runtime_error(message);
}

struct Free {
  void operator()(mtc_result *result) const { mtc_result_free(result); }
  void operator()(mtrun_plan *plan) const { mtrun_plan_free(plan); }
  void operator()(mtrun_session *session) const { mtrun_session_free(session); }
};
template <typename T> using Owned = std::unique_ptr<T, Free>;

// Compiled once for all tests of a model.
mtrun_plan *planOf(const std::string &stem, bool sampleWeights) {
  static std::map<std::string, Owned<mtrun_plan>> known;
  Owned<mtrun_plan> &plan = known[stem];
  if (plan)
    return plan.get();
  mtc_options options = {};
  options.batch = kBatch;
  options.cpu = "native"; // half the time of a plan for all CPUs
  options.sample_weights = sampleWeights;
  mtc_result *result = nullptr;
  check(mtc_compile_file((stem + ".keras").c_str(), &options, &result));
  Owned<mtc_result> compiled(result);
  mtrun_plan *loaded = nullptr;
  check(mtrun_plan_load_memory(mtc_result_data(result), mtc_result_size(result), &loaded));
  plan.reset(loaded);
  return loaded;
}

class Keras : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    std::string stem = dataFolder() + "/" + GetParam();
    mtrun::Status status = mtrun::readWholeFile(stem + ".safetensors", file);
    if (status.ok())
      status = mtrun::parseSafetensors(file, stem, tensors);
    ASSERT_TRUE(status.ok()) << status.message();
    plan = planOf(stem, has("weight/sample_weight"));
    mtrun_options run = {};
    run.devices = "cpu:2";
    mtrun_session *created = nullptr;
    check(mtrun_session_create(plan, &run, &created));
    session.reset(created);
  }

  bool has(const std::string &name) const {
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const mtrun::SafeTensor &tensor) { return tensor.name == name; });
  }

  const mtrun::SafeTensor &find(const std::string &name) const {
    for (const mtrun::SafeTensor &tensor : tensors)
      if (tensor.name == name)
        return tensor;
    throw std::runtime_error("expected " + name + " among Keras' tensors, found none");
  }

  std::vector<mtrun_tensor_info> signature(const char *program) const {
    std::vector<mtrun_tensor_info> entries(mtrun_plan_signature_count(plan, program));
    for (size_t i = 0; i < entries.size(); ++i)
      check(mtrun_plan_signature(plan, program, static_cast<int32_t>(i), &entries[i]));
    return entries;
  }

  int64_t rows() const {
    for (const mtrun::SafeTensor &tensor : tensors)
      if (tensor.name.starts_with("input/"))
        return tensor.shape.at(0);
    return 0;
  }

  static std::vector<float> floats(const mtrun::SafeTensor &tensor) {
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }
  static double largest(const mtrun::SafeTensor &tensor) {
    double most = 0;
    for (float value : floats(tensor))
      most = std::max(most, std::fabs(double(value)));
    return most;
  }
  static std::string kindOf(const std::string &name) {
    for (const char *kind : {"momentum", "output/"})
      if (name.find(kind) != std::string::npos)
        return kind;
    return "after/";
  }

  // 0: none in the file.
  double tolerance() const {
    for (const mtrun::SafeTensor &tensor : tensors)
      if (tensor.name == "tolerance")
        return floats(tensor).at(0);
    return 0;
  }

  void compare(const std::string &name, const std::vector<float> &found, const mtrun::SafeTensor &expected) const {
    ASSERT_EQ(found.size() * sizeof(float), expected.bytes.size()) << name;
    double given = tolerance(), scale = 0;
    if (given > 0) {
      for (const mtrun::SafeTensor &tensor : tensors)
        if (tensor.dtype == MT_F32 && tensor.name != "loss" && kindOf(tensor.name) == kindOf(expected.name))
          scale = std::max(scale, largest(tensor) / 100);
      scale += largest(expected);
    }
    std::vector<float> wanted = floats(expected);
    for (size_t i = 0; i < found.size(); ++i) {
      double allowed = given > 0 ? given * scale : 1e-5 * std::max(1.0, std::fabs(double(wanted[i])));
      ASSERT_NEAR(found[i], wanted[i], allowed) << name << " element " << i;
    }
  }

  std::vector<std::byte> file;
  std::vector<mtrun::SafeTensor> tensors;
  mtrun_plan *plan = nullptr;
  Owned<mtrun_session> session;
};

TEST_P(Keras, Predicts) {
  std::vector<void *> arguments;
  std::vector<std::vector<float>> outputs;
  auto entries = signature("predict");
  outputs.reserve(entries.size());
  for (const mtrun_tensor_info &entry : entries)
    if (entry.role == MTRUN_OUTPUT) {
      outputs.emplace_back(find("output/" + std::string(entry.name)).bytes.size() / sizeof(float));
      arguments.push_back(outputs.back().data());
    } else {
      arguments.push_back(const_cast<std::byte *>(find("input/" + std::string(entry.name)).bytes.data()));
    }
  check(mtrun_predict(session.get(), arguments.data(), rows()));
  size_t at = 0;
  for (const mtrun_tensor_info &entry : entries)
    if (entry.role == MTRUN_OUTPUT)
      compare(entry.name, outputs[at++], find("output/" + std::string(entry.name)));
}

TEST_P(Keras, Trains) {
  std::vector<const void *> arguments;
  for (const mtrun_tensor_info &entry : signature("train_step")) {
    const char *folder = entry.role == MTRUN_INPUT ? "input/" : entry.role == MTRUN_TARGET ? "target/" : "weight/";
    arguments.push_back(find(folder + std::string(entry.name)).bytes.data());
  }
  std::vector<double> values(static_cast<size_t>(mtrun_plan_metric_count(plan, "train_step")));
  mtrun_results results = {values.data(), nullptr, nullptr};
  check(mtrun_train_step(session.get(), arguments.data(), rows(), &results));
  float loss;
  std::memcpy(&loss, find("loss").bytes.data(), sizeof loss);
  auto metrics =
      std::count_if(tensors.begin(), tensors.end(), [](auto &tensor) { return tensor.name.starts_with("metric/"); });
  for (size_t i = 0; i < values.size(); ++i) {
    std::string name = mtrun_plan_metric_name(plan, "train_step", static_cast<int32_t>(i));
    if (name == "loss")
      EXPECT_NEAR(values[i], loss, std::max(1e-5, tolerance()) * std::max(1.0f, std::fabs(loss)));
    if (!has("metric/" + name))
      continue;
    compare(name, {static_cast<float>(values[i])}, find("metric/" + name));
    --metrics;
  }
  EXPECT_EQ(metrics, 0) << "every metric of Keras' is one of the plan's";
  int32_t compared = 0, count = mtrun_plan_variable_count(plan);
  for (int32_t i = 0; i < count; ++i) {
    mtrun_tensor_info info;
    check(mtrun_plan_variable(plan, i, &info));
    const mtrun::SafeTensor &expected = find("after/" + std::string(info.name));
    std::vector<float> found(expected.bytes.size() / sizeof(float));
    check(mtrun_get_variable(session.get(), info.name, found.data(), expected.bytes.size()));
    if (info.dtype == MT_I32)
      EXPECT_EQ(std::memcmp(found.data(), expected.bytes.data(), expected.bytes.size()), 0) << info.name;
    else
      compare(info.name, found, expected);
    ++compared;
  }
  auto isAfter = [](const mtrun::SafeTensor &tensor) { return tensor.name.starts_with("after/"); };
  EXPECT_EQ(compared, std::count_if(tensors.begin(), tensors.end(), isAfter))
      << "every variable of Keras' is one of the plan's";
}

INSTANTIATE_TEST_SUITE_P(Models, Keras, testing::ValuesIn(modelNames()),
                         [](const testing::TestParamInfo<std::string> &info) { return info.param; });

} // namespace
