// SPDX-License-Identifier: Apache-2.0
//
// What a trace takes down, that nothing depends on it, and a program's graph.
#include "LinearModel.h"
#include "TestPlan.h"

#include "runtime/api/Handles.h"

#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>

namespace mtrun::test {
namespace {

struct Handles {
  Handles(const char *devices, bool privateVariables) {
    std::vector<uint8_t> bytes = makePlan({}, [](mt::plan::PlanT &plan) {
      plan.layers = {"linear"};
      for (auto &step : plan.programs[1]->steps)
        step->layer = step->kernel >= 0 ? 0 : -1;
    });
    EXPECT_EQ(mtrun_plan_load_memory(bytes.data(), bytes.size(), &plan), nullptr);
    mtrun_options options = mtrun_options_init();
    options.devices = devices;
    options.private_variables = privateVariables;
    EXPECT_EQ(mtrun_session_create(plan, &options, &session), nullptr);
  }
  ~Handles() {
    mtrun_session_free(session);
    mtrun_plan_free(plan);
  }
  void train(int steps) {
    TestPlanShape shape;
    Samples samples(shape, 3);
    const void *tensors[] = {samples.x.data(), samples.y.data(), nullptr};
    for (int i = 0; i < steps; ++i)
      EXPECT_EQ(mtrun_train_step(session, tensors, static_cast<int64_t>(shape.batch) - i, nullptr), nullptr);
  }
  const Tracer &tracer() const { return *session->session->tracer(); }

  mtrun_plan *plan = nullptr;
  mtrun_session *session = nullptr;
};

std::string taken(mt_status *status) {
  std::string message = status ? mt_status_message(status) : "";
  mt_status_free(status);
  return message;
}

TEST(Tracer, SpansFollowOneAnother) {
  Handles traced("cpu:2x2", true), plain("cpu:2x2", true);
  mtrun_trace_options options = {sizeof(mtrun_trace_options), 2, 4, 1, 0, 0};
  ASSERT_EQ(taken(mtrun_trace_start(traced.session, &options)), "");
  traced.train(6);
  plain.train(6);
  EXPECT_EQ(std::memcmp(traced.session->session->variable(0).data(), plain.session->session->variable(0).data(),
                        plain.session->session->variable(0).size()),
            0);
  const Tracer &tracer = traced.tracer();
  EXPECT_EQ(tracer.seen(), 6);
  EXPECT_EQ(tracer.recorded(), 6);
  EXPECT_EQ(tracer.samples(), 6 * 21 - 15);
  ASSERT_EQ(tracer.runs().size(), 3u);
  ASSERT_EQ(tracer.tracks().size(), 4u);
  for (const Track &track : tracer.tracks()) {
    size_t kinds[spanKinds] = {};
    const Span *before = nullptr;
    for (const Span &span : track.spans()) {
      const RecordedRun &run = tracer.runs()[span.run];
      EXPECT_EQ(run.number, span.run + 2);
      EXPECT_LE(run.begin, span.begin);
      EXPECT_LE(span.begin, span.end);
      EXPECT_LE(span.end, run.end);
      if (before && before->run == span.run) {
        EXPECT_EQ(before->end, span.begin);
      }
      before = &span;
      ++kinds[static_cast<size_t>(span.kind)];
    }
    // Two all-reduces a step, three steps.
    EXPECT_EQ(kinds[static_cast<size_t>(SpanKind::Transfer)] - kinds[static_cast<size_t>(SpanKind::Sum)], 6u);
    EXPECT_GE(kinds[static_cast<size_t>(SpanKind::Wait)], 18u);
    EXPECT_GT(kinds[static_cast<size_t>(SpanKind::Kernel)], 0u);
  }
}

TEST(Tracer, ProfileThroughTheApi) {
  Handles handles("null:2", false);
  mtrun_profile profile;
  EXPECT_EQ(taken(mtrun_profile_get(handles.session, &profile)),
            "expected traced training steps to report, found no trace");
  mtrun_trace_options options = {sizeof(mtrun_trace_options), 0, 0, 1, 0, 0};
  ASSERT_EQ(taken(mtrun_trace_start(handles.session, &options)), "");
  EXPECT_EQ(taken(mtrun_profile_get(handles.session, &profile)),
            "expected traced training steps to report, found none of the 0");
  handles.train(3);
  ASSERT_EQ(taken(mtrun_profile_get(handles.session, &profile)), "");
  EXPECT_EQ(profile.steps, 3);
  EXPECT_EQ(profile.samples, 3 * 21 - 3);
  EXPECT_EQ(profile.threads, 2);
  EXPECT_GT(profile.step_us, 0);
  double us = profile.idle_us;
  int reduces = 0;
  for (int32_t i = 0; i < profile.entries; ++i) {
    mtrun_profile_entry entry;
    ASSERT_EQ(taken(mtrun_profile_get_entry(handles.session, i, &entry)), "");
    us += entry.compute_us + entry.transfer_us + entry.wait_us;
    bool reduce = std::string(entry.kind) == "all_reduce";
    reduces += reduce;
    EXPECT_STREQ(entry.layer, reduce ? "" : "linear");
  }
  EXPECT_EQ(reduces, 2);
  // Every thread's time is somewhere, but for what a step spends outside its threads.
  EXPECT_NEAR(us, 2 * profile.step_us, 0.2 * profile.step_us + 5);
  mtrun_profile_entry entry;
  EXPECT_EQ(taken(mtrun_profile_get_entry(handles.session, profile.entries, &entry)),
            "expected a profile entry below " + std::to_string(profile.entries) + ", found " +
                std::to_string(profile.entries));
}

TEST(Tracer, Errors) {
  Handles handles("null:1", false);
  EXPECT_EQ(taken(mtrun_trace_write(handles.session, "x.json")),
            "no step to write a trace of: expected mtrun_trace_start before");
  for (auto [first, last] : {std::pair<int64_t, int64_t>{-1, 3}, {3, 2}, {0, 2}}) {
    mtrun_trace_options options = {sizeof(mtrun_trace_options), first, last, 0, 0, 0};
    EXPECT_NE(taken(mtrun_trace_start(handles.session, &options)).find("expected steps first to last"),
              std::string::npos);
  }
  mtrun_trace_options options = {sizeof(mtrun_trace_options), 1, INT64_MAX, 0, 0, 0};
  EXPECT_NE(
      taken(mtrun_trace_start(handles.session, &options)).find("which take a gigabyte, found 9223372036854775807"),
      std::string::npos);
  options.last = 2;
  ASSERT_EQ(taken(mtrun_trace_start(handles.session, &options)), "");
  handles.train(3);
  EXPECT_EQ(handles.tracer().recorded(), 2);
  std::string path = (std::filesystem::temp_directory_path() / "no-such-folder" / "x.json").string();
  EXPECT_EQ(taken(mtrun_trace_write(handles.session, path.c_str())),
            "cannot create " + path + ": No such file or directory");
}

TEST(Graph, NodesComeAfterWhatTheyRead) {
  Handles handles("null:1", false);
  std::vector<std::string> lines;
  auto take = [](void *user, const mtrun_node *node) {
    std::string line = std::string(node->name) + " " + node->kind;
    auto &lines = *static_cast<std::vector<std::string> *>(user);
    for (int32_t i = 0; i < node->inputs; ++i) {
      std::string input = node->input_names[i];
      EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [&](const auto &l) { return l.starts_with(input + " "); }));
      line += " " + input;
    }
    lines.push_back(line);
  };
  ASSERT_EQ(taken(mtrun_plan_graph(handles.plan, "train_step", take, &lines)), "");
  auto has = [&](const char *start) {
    return std::any_of(lines.begin(), lines.end(), [&](const auto &line) { return line.starts_with(start); });
  };
  EXPECT_TRUE(has("x input"));
  EXPECT_TRUE(has("w variable"));
  EXPECT_TRUE(has("linear/"));
  EXPECT_TRUE(has("all-reduce 0 all_reduce linear/"));
  lines.clear();
  ASSERT_EQ(taken(mtrun_plan_graph(handles.plan, "predict", take, &lines)), "");
  EXPECT_TRUE(lines.back().starts_with("out output "));
  EXPECT_EQ(taken(mtrun_plan_graph(handles.plan, "none", take, &lines)), "the plan has no program none");
}

} // namespace
} // namespace mtrun::test
