// SPDX-License-Identifier: Apache-2.0
//
// The calls of mtrun.h about plans and sessions, as a host makes them.
#include "LinearModel.h"
#include "TestPlan.h"

#include "runtime/abi/mtrun.h"
#include "runtime/support/option_struct.h"

#include <gtest/gtest.h>
#include <string>

namespace mtrun::test {
namespace {

// Code and message of a status, which it frees.
std::string take(mt_status *status) {
  std::string text = std::to_string(mt_status_code(status)) + ": " + mt_status_message(status);
  mt_status_free(status);
  return text;
}

const std::string success = "0: ";

class Api : public testing::Test {
protected:
  void SetUp() override {
    std::vector<uint8_t> bytes = makePlan(shape);
    ASSERT_EQ(take(mtrun_plan_load_memory(bytes.data(), bytes.size(), &plan)), success);
  }
  void TearDown() override {
    mtrun_session_free(session);
    mtrun_plan_free(plan);
  }
  void create(mtrun_options options = mtrun_options_init()) {
    ASSERT_EQ(take(mtrun_session_create(plan, &options, &session)), success);
  }

  TestPlanShape shape;
  mtrun_plan *plan = nullptr;
  mtrun_session *session = nullptr;
};

TEST_F(Api, DescribesThePlan) {
  EXPECT_STREQ(mtrun_plan_model(plan), "linear");
  EXPECT_EQ(mtrun_plan_batch(plan), 21);
  EXPECT_EQ(mtrun_plan_shards(plan), 8);
  EXPECT_TRUE(mtrun_plan_has_program(plan, "train_step"));
  EXPECT_FALSE(mtrun_plan_has_program(plan, "eval_step"));
  EXPECT_FALSE(mtrun_plan_has_program(plan, nullptr));
  EXPECT_TRUE(mtrun_plan_has_code(plan, "cpu")); // of a target that names no device
  EXPECT_FALSE(mtrun_plan_has_code(plan, "cuda"));
  EXPECT_FALSE(mtrun_plan_has_code(plan, nullptr));
  EXPECT_FALSE(mtrun_plan_has_weights(plan));
  ASSERT_EQ(mtrun_plan_signature_count(plan, "train_step"), 3);
  EXPECT_EQ(mtrun_plan_signature_count(plan, "eval_step"), 0);
  mtrun_tensor_info info;
  ASSERT_EQ(take(mtrun_plan_signature(plan, "train_step", 0, &info)), success);
  EXPECT_STREQ(info.name, "x");
  EXPECT_EQ(info.rank, 2);
  EXPECT_EQ(info.shape[0], -1);
  EXPECT_EQ(info.shape[1], 37);
  EXPECT_EQ(info.role, MTRUN_INPUT);
  ASSERT_EQ(take(mtrun_plan_signature(plan, "train_step", 2, &info)), success);
  EXPECT_EQ(info.role, MTRUN_SAMPLE_WEIGHT);
  EXPECT_TRUE(info.optional);
  EXPECT_EQ(take(mtrun_plan_signature(plan, "train_step", 3, &info)), "1: expected a signature entry below 3, found 3");
  EXPECT_EQ(mtrun_plan_metric_count(plan, "train_step"), 1);
  EXPECT_STREQ(mtrun_plan_metric_name(plan, "train_step", 0), "loss");
  EXPECT_EQ(mtrun_plan_metric_name(plan, "train_step", 1), nullptr);
  EXPECT_TRUE(mtrun_plan_has_code(plan, "cpu")); // also where its targets name no device
  EXPECT_FALSE(mtrun_plan_has_code(plan, "cuda"));
  ASSERT_EQ(mtrun_plan_variable_count(plan), 4);
  ASSERT_EQ(take(mtrun_plan_variable(plan, 3, &info)), success);
  EXPECT_STREQ(info.name, "iteration");
  EXPECT_EQ(info.dtype, MT_I32);
  EXPECT_EQ(info.rank, 0);
  EXPECT_EQ(info.kind, 1);
  EXPECT_EQ(take(mtrun_plan_variable(plan, -1, &info)), "1: expected a variable below 4, found -1");
}

TEST_F(Api, TrainsAndReadsVariables) {
  create();
  Samples samples(shape, 3);
  LinearModel model(shape);
  model.initialise(7);
  const void *tensors[] = {samples.x.data(), samples.y.data(), nullptr};
  double loss, weight;
  mtrun_results results = {&loss, &weight, nullptr, nullptr};
  for (int step = 0; step < 3; ++step) {
    model.step(samples, 13, false);
    ASSERT_EQ(take(mtrun_train_step(session, tensors, 13, &results)), success);
    EXPECT_EQ(loss, model.losses[model.losses.size() - 2]);
    EXPECT_EQ(weight, 13);
  }
  std::vector<float> w(shape.features);
  ASSERT_EQ(take(mtrun_get_variable(session, "w", w.data(), w.size() * sizeof(float))), success);
  EXPECT_EQ(w, model.w);
  EXPECT_EQ(take(mtrun_get_variable(session, "w", w.data(), 5)), "1: variable w: expected 148 bytes, found 5");
  EXPECT_EQ(take(mtrun_get_variable(session, "W", w.data(), 148)),
            "1: expected one of the plan's variables (w, b, rate, iteration), found W");
  EXPECT_EQ(take(mtrun_eval_step(session, tensors, 13, nullptr)), "1: the plan has no program eval_step");

  std::fill(w.begin(), w.end(), 0.0f);
  ASSERT_EQ(take(mtrun_set_variable(session, "w", w.data(), w.size() * sizeof(float))), success);
  std::vector<float> out(shape.batch);
  void *predict[] = {samples.x.data(), out.data()};
  ASSERT_EQ(take(mtrun_predict(session, predict, 21)), success);
  EXPECT_EQ(out, std::vector<float>(shape.batch, model.b));
}

TEST_F(Api, ReportsTheSession) {
  std::string log;
  mtrun_options options = mtrun_options_init();
  options.devices = "cpu:3x2";
  options.log_user = &log;
  options.log = [](void *user, int, const char *message) { *static_cast<std::string *>(user) += message; };
  options.no_pin = options.no_spin = options.private_variables = 1;
  create(options);
  mtrun_session_info info;
  mtrun_session_get_info(session, &info);
  EXPECT_EQ(info.devices, 3);
  EXPECT_EQ(info.threads_per_device, 2);
  EXPECT_EQ(info.variables_bytes, 192 + 3 * 64);
  EXPECT_STREQ(info.target, "any");
  EXPECT_EQ(info.seed, 7);
  EXPECT_EQ(mtrun_session_plan(session), plan);
  EXPECT_EQ(mtrun_session_shards(session, 2), 4);
  int64_t first = -1, rows = -1;
  mtrun_session_own_rows(session, &first, &rows); // one process computes the whole batch
  EXPECT_EQ(first, 0);
  EXPECT_EQ(rows, mtrun_plan_batch(plan));
  EXPECT_NE(log.find("running on cpu:3x2, target any"), std::string::npos) << log;
}

// A host that was compiled with another version of the header than the library: its options are taken, or it is told.
TEST_F(Api, TakesOptionsOfOtherVersions) {
  struct Newer {
    mtrun_options options = mtrun_options_init();
    const char *added = nullptr;
  } newer;
  newer.options.struct_size = sizeof newer;
  newer.options.devices = "cpu:3";
  ASSERT_EQ(take(mtrun_session_create(plan, &newer.options, &session)), success);
  EXPECT_EQ(mtrun_session_shards(session, 3), 0);
  mtrun_session_free(session);
  newer.added = "something";
  std::string size = std::to_string(sizeof(mtrun_options));
  std::string message = take(mtrun_session_create(plan, &newer.options, &session));
  EXPECT_EQ(message.rfind("1: mtrun_options: expected the options of this version, " + size +
                              " bytes, found one set at byte " + size.substr(0, 1),
                          0),
            0u)
      << message;
  EXPECT_NE(message.find(": the caller was made for a newer version"), std::string::npos) << message;
  mtrun_options unset = {};
  message = take(mtrun_session_create(plan, &unset, &session));
  EXPECT_EQ(message.rfind("1: mtrun_options.struct_size: expected ", 0), 0u) << message;
  EXPECT_NE(message.find(", as mtrun_options_init() sets it, found 0"), std::string::npos) << message;
  unset.struct_size = SIZE_MAX; // nothing is read that far
  EXPECT_NE(take(mtrun_session_create(plan, &unset, &session)).find("found " + std::to_string(SIZE_MAX)),
            std::string::npos);
  EXPECT_EQ(session, nullptr);
  ASSERT_EQ(take(mtrun_session_create(plan, nullptr, &session)), success);
  mtrun_trace_options trace = {};
  EXPECT_NE(take(mtrun_trace_start(session, &trace)).find("mtrun_trace_options_init()"), std::string::npos);
}

TEST(Options, OfAnOlderCallerLackTheLastFields) {
  struct Grown { // twice: it began with `first` alone
    size_t struct_size;
    int64_t first, second;
    const char *third;
  };
  auto read = [](const Grown *given, Grown &options) {
    return MTRUN_READ_OPTIONS(Grown, first, given, options).message();
  };
  Grown given = {offsetof(Grown, second), 1, 2, "3"}, options = {};
  EXPECT_EQ(read(&given, options), "");
  EXPECT_EQ(options.struct_size, sizeof(Grown));
  EXPECT_EQ(options.first, 1);
  EXPECT_EQ(options.second, 0);
  EXPECT_EQ(options.third, nullptr);
  given.struct_size = offsetof(Grown, third);
  EXPECT_EQ(read(&given, options), "");
  EXPECT_EQ(options.second, 2);
  EXPECT_EQ(options.third, nullptr);
  given.struct_size = offsetof(Grown, first);
  EXPECT_EQ(read(&given, options), "Grown.struct_size: expected 16 to 4096, as Grown_init() sets it, found 8");
  EXPECT_EQ(read(nullptr, options), "");
  EXPECT_EQ(options.first, 0);
}

// A program could not tell which library it runs with.
TEST(Version, IsThatOfTheHeaders) {
  std::string parts = std::to_string(MT_VERSION_MAJOR) + "." + std::to_string(MT_VERSION_MINOR) + "." +
                      std::to_string(MT_VERSION_PATCH);
  EXPECT_EQ(mtrun_version(), parts);
  EXPECT_EQ(MT_VERSION, parts);
}

TEST(Statuses, NullIsSuccess) {
  EXPECT_EQ(mt_status_code(nullptr), MT_OK);
  EXPECT_STREQ(mt_status_message(nullptr), "");
  mt_status_free(nullptr);
  mtrun_plan_free(nullptr);
  mtrun_session_free(nullptr);
  mtrun_plan *plan = nullptr;
  EXPECT_EQ(take(mtrun_plan_load("/nonexistent/plan.mtp", &plan)),
            "7: cannot open /nonexistent/plan.mtp: No such file or directory");
  EXPECT_EQ(plan, nullptr);
  EXPECT_EQ(mt_dtype_size(MT_I64), 8u);
  EXPECT_STREQ(mt_dtype_name(MT_BOOL), "bool");
}

} // namespace
} // namespace mtrun::test
