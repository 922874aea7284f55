// SPDX-License-Identifier: Apache-2.0
#include "Model.h"

#include <gtest/gtest.h>
#include <string_view>
#include <thread>
#include <vector>

using namespace mtctest;

TEST(Version, IsThatOfTheHeaders) { EXPECT_STREQ(mtc_version(), MT_VERSION); }

TEST(Compile, MakesAPlanFromMemory) {
  Outcome outcome = compile(model);
  ASSERT_EQ(outcome.code, MT_OK) << outcome.message;
  EXPECT_EQ(outcome.bytes().substr(0, 8), "MTPLAN\r\n");
}

TEST(Compile, TakesNullForTheDefaults) {
  mtc_result *result = nullptr;
  Outcome outcome = take(mtc_compile_text(model.data(), model.size(), nullptr, nullptr, &result), result);
  ASSERT_EQ(outcome.code, MT_OK) << outcome.message;
  EXPECT_EQ(outcome.bytes(), compile(model).bytes());
}

TEST(Import, OfATextIsTheSameModel) {
  mtc_result *text = nullptr, *weights = nullptr;
  mt_status *status = mtc_import_text(model.data(), model.size(), nullptr, nullptr, &text, &weights);
  Outcome outcome = take(status, text);
  ASSERT_EQ(outcome.code, MT_OK) << outcome.message;
  EXPECT_EQ(weights, nullptr);
  EXPECT_EQ(compile(outcome.bytes()).bytes(), compile(model).bytes());
}

TEST(Compile, ThreadsCompileAtOnceAndAlike) {
  std::string expected = compile(model).bytes();
  std::vector<std::string> plans(4);
  std::vector<std::thread> threads;
  for (std::string &plan : plans)
    threads.emplace_back([&plan] {
      Outcome outcome = compile(model);
      plan = outcome.code == MT_OK ? outcome.bytes() : outcome.message;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &plan : plans)
    EXPECT_TRUE(plan == expected) << plan.substr(0, 200);
}

TEST(Compile, ErrorsOfThreadsDoNotMix) {
  std::vector<std::string> messages(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < messages.size(); ++i)
    threads.emplace_back(
        [&messages, i] { messages[i] = importError(std::string(i, '\n') + "mt.model @m { mt.frob }"); });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t i = 0; i < messages.size(); ++i)
    EXPECT_EQ(messages[i],
              "model.mlir:" + std::to_string(i + 1) + ":15: error: expected an op of the mt dialect, found 'mt.frob'");
}

TEST(Compile, ChoosesShardsThatTheBatchAllows) {
  mtc_options options = mtc_options_init();
  options.stop_after = "import";
  for (auto [batch, shards] : {std::pair(1, 1), {3, 2}, {7, 4}, {8, 8}, {1000, 8}}) {
    options.batch = batch;
    Outcome outcome = compile(model, options);
    ASSERT_EQ(outcome.code, MT_OK) << outcome.message;
    EXPECT_NE(outcome.bytes().find(", shards = " + std::to_string(shards) + ","), std::string::npos) << outcome.bytes();
  }
}

TEST(Compile, OptionsSayWhatWasExpected) {
  auto message = [](auto set) {
    mtc_options options = mtc_options_init();
    set(options);
    Outcome outcome = compile(model, options);
    return outcome.code == MT_INVALID ? outcome.message : "compiled";
  };
  EXPECT_NE(message([](mtc_options &o) { o.struct_size = 0; }).find(", as mtc_options_init() sets it, found 0"),
            std::string::npos);
  EXPECT_EQ(message([](mtc_options &o) { o.batch = -1; }), "expected --batch to be 1 to 1073741824, found -1");
  EXPECT_EQ(message([](mtc_options &o) { o.shards = 6; }), "expected --shards to be a power of two, found 6");
  EXPECT_EQ(message([](mtc_options &o) { o.shards = -8; }), "expected --shards to be 1 to 65536, found -8");
  EXPECT_EQ(message([](mtc_options &o) { o.shards = 64; }), "expected --shards to be at most the batch, 32, found 64");
  EXPECT_EQ(message([](mtc_options &o) { o.device_memory = -1; }),
            "expected --device-memory to be 0 bytes or more, found -1");
  EXPECT_EQ(message([](mtc_options &o) { o.target = "cpu,cuda:sm_70"; }),
            "expected --target to be a list of cpu, cuda and cuda:ARCHITECTURE (sm_75, sm_80, sm_86, sm_89, sm_90, "
            "sm_100, sm_120), found 'cpu,cuda:sm_70'; did you mean cuda:sm_75?");
  EXPECT_EQ(message([](mtc_options &o) { o.cpu = "i386"; }),
            "expected the CPU to be native, x86-64-v4-bf16, x86-64-v4, x86-64-v3 or armv8-a, found 'i386'");
}

TEST(Compile, LogsTimesAndASummary) {
  std::vector<std::string> lines;
  mtc_options options = mtc_options_init();
  options.timing = 1;
  options.log = [](void *user, int, const char *message) {
    static_cast<std::vector<std::string> *>(user)->push_back(message);
  };
  options.log_user = &lines;
  ASSERT_EQ(compile(model, options).code, MT_OK);
  int32_t stages = 0;
  while (mtc_stage_name(stages))
    ++stages;
  ASSERT_EQ(lines.size(), static_cast<size_t>(stages) + 2); // the total, the summary
  for (int32_t i = 0; i < stages; ++i)
    EXPECT_TRUE(lines[i].starts_with(mtc_stage_name(i))) << lines[i];
  EXPECT_TRUE(lines.back().starts_with("small: batch 32, 8 shards")) << lines.back();
}

TEST(Stages, HaveNamesAndHelp) {
  EXPECT_EQ(std::string_view(mtc_stage_name(0)), "import");
  int32_t count = 0;
  for (; mtc_stage_name(count); ++count)
    EXPECT_TRUE(mtc_stage_help(count) && *mtc_stage_help(count));
  EXPECT_EQ(std::string_view(mtc_stage_name(count - 1)), "plan");
  EXPECT_EQ(mtc_stage_help(count), nullptr);
  EXPECT_EQ(mtc_stage_name(-1), nullptr);
}
