// SPDX-License-Identifier: Apache-2.0
//
// Every model of test/keras/data (make.py and random_models.py made them with Keras): its plan starts where Keras'
// model stood, predicts what it predicts, and a step leads where its step leads, with its loss and metrics.
#include "test/keras/Expected.h"

#include "runtime/abi/mtc.h"
#include "runtime/abi/mtrun.h"

#include <map>
#include <memory>
#include <stdexcept>

namespace {

constexpr int64_t planBatch = 8;

using kerastest::Expected;
// Four times the rounding that Keras itself has, since both are samples of the same.
constexpr kerastest::Nearness nearness = {2e-5, 4, 1e-6};

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
  mtc_options options = mtc_options_init();
  options.batch = planBatch;
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
    std::string stem = Expected::folder() + "/" + GetParam();
    mtrun::Status status = expected.load(stem);
    ASSERT_TRUE(status.ok()) << status.message();
    plan = planOf(stem, expected.has("weight/sample_weight"));
    mtrun_options run = mtrun_options_init();
    run.devices = "cpu:2";
    mtrun_session *created = nullptr;
    check(mtrun_session_create(plan, &run, &created));
    session.reset(created);
  }

  std::vector<mtrun_tensor_info> signature(const char *program) const {
    std::vector<mtrun_tensor_info> entries(mtrun_plan_signature_count(plan, program));
    for (size_t i = 0; i < entries.size(); ++i)
      check(mtrun_plan_signature(plan, program, static_cast<int32_t>(i), &entries[i]));
    return entries;
  }

  Expected expected;
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
      outputs.emplace_back(expected.find("output/" + std::string(entry.name)).bytes.size() / sizeof(float));
      arguments.push_back(outputs.back().data());
    } else {
      arguments.push_back(const_cast<std::byte *>(expected.find("input/" + std::string(entry.name)).bytes.data()));
    }
  check(mtrun_predict(session.get(), arguments.data(), expected.rows()));
  size_t at = 0;
  for (const mtrun_tensor_info &entry : entries)
    if (entry.role == MTRUN_OUTPUT)
      expected.compare("output/" + std::string(entry.name), outputs[at++], nearness);
}

TEST_P(Keras, Trains) {
  std::vector<const void *> arguments;
  for (const mtrun_tensor_info &entry : signature("train_step")) {
    const char *folder = entry.role == MTRUN_INPUT ? "input/" : entry.role == MTRUN_TARGET ? "target/" : "weight/";
    arguments.push_back(expected.find(folder + std::string(entry.name)).bytes.data());
  }
  std::vector<double> values(static_cast<size_t>(mtrun_plan_metric_count(plan, "train_step")));
  mtrun_results results = {values.data(), nullptr, nullptr, nullptr};
  check(mtrun_train_step(session.get(), arguments.data(), expected.rows(), &results));
  int64_t metrics = expected.countOf("metric/");
  for (size_t i = 0; i < values.size(); ++i) {
    std::string name = mtrun_plan_metric_name(plan, "train_step", static_cast<int32_t>(i));
    std::vector<float> value{static_cast<float>(values[i])};
    if (name == "loss")
      expected.compare("loss", value, nearness);
    if (!expected.has("metric/" + name))
      continue;
    expected.compare("metric/" + name, value, nearness);
    --metrics;
  }
  EXPECT_EQ(metrics, 0) << "every metric of Keras' is one of the plan's";
  int32_t compared = 0, count = mtrun_plan_variable_count(plan);
  for (int32_t i = 0; i < count; ++i) {
    mtrun_tensor_info info;
    check(mtrun_plan_variable(plan, i, &info));
    const mtrun::SafeTensor &after = expected.find("after/" + std::string(info.name));
    std::vector<float> found(after.bytes.size() / sizeof(float));
    check(mtrun_get_variable(session.get(), info.name, found.data(), after.bytes.size()));
    if (info.dtype == MT_I32)
      EXPECT_EQ(std::memcmp(found.data(), after.bytes.data(), after.bytes.size()), 0) << info.name;
    else
      expected.compare(after.name, found, nearness);
    ++compared;
  }
  EXPECT_EQ(compared, expected.countOf("after/")) << "every variable of Keras' is one of the plan's";
}

INSTANTIATE_TEST_SUITE_P(Models, Keras, testing::ValuesIn(Expected::modelNames()),
                         [](const testing::TestParamInfo<std::string> &info) { return info.param; });

} // namespace
