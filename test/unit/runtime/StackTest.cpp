// SPDX-License-Identifier: Apache-2.0
//
// A host program whose threads have small stacks trains, and threads of ours do not depend on `ulimit -s`.
#include "Training.h"

#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <pthread.h>

namespace mtrun::test {
namespace {

#if defined(__has_feature)
#define MTC_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define MTC_SANITIZED 0
#endif

struct Host {
  const std::string *path;
  LinearModel trained;
  std::string error;
};

void *host(void *argument) {
  auto &host = *static_cast<Host *>(argument);
  std::unique_ptr<Plan> plan;
  std::unique_ptr<Session> session;
  mtrun_options options = mtrun_options_init();
  options.devices = "cpu:2x2";
  Samples samples({}, 3);
  Status status = Plan::load(*host.path, plan);
  if (status.ok())
    status = Session::create(*plan, &options, session);
  if (status.ok())
    status = train(*session, {}, samples, host.trained);
  host.error = status.message();
  return nullptr;
}

TEST(Stack, AThreadOf64KiBTrains) {
  if (MTC_SANITIZED)
    GTEST_SKIP() << "frames of sanitized code are larger";
  TestPlanShape shape;
  std::string path = testing::TempDir() + "stack.mtp";
  std::vector<uint8_t> bytes = makePlan(shape);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  Host small{&path, LinearModel(shape), ""};
  pthread_attr_t attributes;
  pthread_t thread;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 64 << 10), 0);
  ASSERT_EQ(pthread_create(&thread, &attributes, host, &small), 0);
  pthread_attr_destroy(&attributes);
  pthread_join(thread, nullptr);
  EXPECT_EQ(small.error, "");
  EXPECT_EQ(small.trained, expected(shape, Samples(shape, 3)));
  std::remove(path.c_str());
}

// Each kernel says how much memory a thread needs besides; sessions count it, a copy a thread.
TEST(Stack, ScratchIsPartOfThePeak) {
  auto peak = [](uint64_t scratch, const char *devices, bool privateVariables) {
    Loaded loaded({}, [&](mt::plan::PlanT &plan) { plan.kernels[2]->scratch_bytes = scratch; });
    return makeSession(*loaded.plan, devices, privateVariables)->info().peak_bytes;
  };
  constexpr uint64_t scratch = 64 * 1000;
  for (bool privateVariables : {false, true})
    EXPECT_EQ(peak(scratch, "cpu:2x3", privateVariables) - peak(0, "cpu:2x3", privateVariables), 6 * scratch);
}

} // namespace
} // namespace mtrun::test
