// SPDX-License-Identifier: Apache-2.0
//
// What a step costs before any kernel runs: the null device walks a plan with as many steps and waits as an MLP's.
#include "LinearModel.h"
#include "TestPlan.h"

#include "runtime/session/Session.h"

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>

namespace mtrun::test {
namespace {

// Repeats the launches before the all-reduces, so that a step has `launches` of them, each behind a wait of its own.
void lengthen(mt::plan::PlanT &plan, size_t launches) {
  auto &steps = plan.programs[1]->steps;
  while (steps.size() < launches + 2) {
    auto copy = std::make_unique<mt::plan::StepT>();
    copy->wait = mt::plan::Wait::Device;
    copy->kernel = steps[1]->kernel;
    auto segment = std::make_unique<mt::plan::SegmentT>();
    segment->buffers = steps[1]->segments[0]->buffers;
    copy->segments.push_back(std::move(segment));
    steps.insert(steps.begin() + 1, std::move(copy));
  }
}

double medianMicroseconds(Session &session, const void *const *tensors, int64_t n) {
  std::vector<double> times;
  for (int i = 0; i < 2000; ++i) {
    auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(session.run("train_step", tensors, n, nullptr).ok());
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + 1000, times.end());
  return times[1000];
}

TEST(Overhead, AStepOnTheNullDevice) {
  constexpr size_t launches = 20;
  TestPlanShape shape;
  std::vector<uint8_t> bytes = makePlan(shape, [](mt::plan::PlanT &plan) { lengthen(plan, launches); });
  std::unique_ptr<Plan> plan;
  Status status = Plan::loadMemory(bytes.data(), bytes.size(), plan);
  ASSERT_TRUE(status.ok()) << status.message();
  Samples samples(shape, 3);
  const void *tensors[] = {samples.x.data(), samples.y.data(), nullptr};
  for (const char *devices : {"null:1", "null:2", "null:8"}) {
    mtrun_options options = mtrun_options_init();
    options.devices = devices;
    std::unique_ptr<Session> session;
    ASSERT_TRUE(Session::create(*plan, &options, session).ok());
    double median = medianMicroseconds(*session, tensors, static_cast<int64_t>(shape.batch));
    std::printf("%s: %.2f us a step of %zu launches and 2 all-reduces\n", devices, median, launches);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    if (std::string(devices) == "null:1") // the others wait for the system's scheduler where CPUs are few or busy
      EXPECT_LE(median, 10);
#endif
  }
}

} // namespace
} // namespace mtrun::test
