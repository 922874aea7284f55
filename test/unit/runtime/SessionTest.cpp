// SPDX-License-Identifier: Apache-2.0
//
// A trained model's bits do not depend on devices, threads, or what memory held before.
#include "Training.h"

#include "runtime/api/Handles.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <sched.h>
#include <thread>

namespace mtrun::test {
namespace {

TEST(Session, SameBitsOnEveryNumberOfDevicesAndThreads) {
  for (TestPlanShape shape : {TestPlanShape{21, 8, 37}, TestPlanShape{8, 8, 1}, TestPlanShape{100, 8, 130},
                              TestPlanShape{5, 8, 16}, TestPlanShape{33, 16, 40}, TestPlanShape{10, 1, 3}}) {
    Loaded loaded(shape);
    Samples samples(shape, 3);
    LinearModel want = expected(shape, samples);
    for (const char *devices : {"cpu", "cpu:1x2", "cpu:1x3", "cpu:2", "cpu:3", "cpu:2x2", "cpu:5", "cpu:7", "cpu:8"})
      for (bool privateVariables : {false, true}) {
        if (devices[3] && static_cast<uint32_t>(devices[4] - '0') > shape.shards)
          continue;
        std::unique_ptr<Session> session = makeSession(*loaded.plan, devices, privateVariables);
        ASSERT_NE(session, nullptr);
        EXPECT_EQ(trained(*session, shape, samples), want)
            << devices << " private " << privateVariables << " batch " << shape.batch << " features " << shape.features;
      }
  }
}

// `cp new.mtp plan.mtp` while a run trains the old one: it neither ends with SIGBUS nor changes.
TEST(Session, DoesNotDependOnThePlansFile) {
  TestPlanShape shape;
  Samples samples(shape, 3);
  std::string path = testing::TempDir() + "overwritten.mtp";
  std::vector<uint8_t> bytes = makePlan(shape);
  auto write = [&](const std::vector<uint8_t> &content) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char *>(content.data()), static_cast<std::streamsize>(content.size()));
  };
  write(bytes);
  std::unique_ptr<Plan> plan;
  ASSERT_TRUE(Plan::load(path, plan).ok());
  std::unique_ptr<Session> session = makeSession(*plan, "cpu:2");
  for (std::vector<uint8_t> content : {std::vector<uint8_t>(bytes.size(), 0xff), std::vector<uint8_t>()}) {
    write(content);
    ASSERT_TRUE(session->init(0).ok());
    EXPECT_EQ(trained(*session, shape, samples), expected(shape, samples)) << content.size();
    EXPECT_NE(makeSession(*plan, "cpu:3"), nullptr);
  }
  std::remove(path.c_str());
}

TEST(Session, RefusesAVariableOfAnotherSize) {
  Loaded loaded;
  std::unique_ptr<Session> session = makeSession(*loaded.plan, "cpu");
  float rate = 1;
  Status status = session->setVariable(0, std::as_bytes(std::span(&rate, 1)));
  EXPECT_EQ(status.code(), MT_INVALID);
  EXPECT_EQ(status.message(), "expected 148 bytes for variable w, found 4");
}

TEST(Session, ReadsValidRowsOnly) {
  TestPlanShape shape;
  Loaded loaded(shape);
  Samples clean(shape, 3);
  for (const char *devices : {"cpu:1", "cpu:3", "cpu:8"})
    for (uint64_t n : {uint64_t{1}, uint64_t{4}, shape.batch - 1}) {
      auto after = [&](bool dirty) {
        Samples samples = clean;
        if (dirty)
          samples.spoilFrom(n);
        std::unique_ptr<Session> session = makeSession(*loaded.plan, devices);
        const void *tensors[] = {samples.x.data(), samples.y.data(), samples.weights.data()};
        EXPECT_TRUE(session->run("train_step", tensors, static_cast<int64_t>(n), nullptr).ok());
        std::vector<std::byte> w(session->variable(0).begin(), session->variable(0).end());
        return w;
      };
      EXPECT_EQ(after(false), after(true)) << devices << " n " << n;
    }
}

TEST(Session, PredictWritesValidRowsOnly) {
  TestPlanShape shape;
  Loaded loaded(shape);
  Samples samples(shape, 5);
  LinearModel model(shape);
  model.initialise(7);
  for (const char *devices : {"cpu:1", "cpu:3x2", "cpu:8"}) {
    std::unique_ptr<Session> session = makeSession(*loaded.plan, devices);
    for (uint64_t n : {uint64_t{1}, uint64_t{10}, shape.batch}) {
      std::vector<float> out(shape.batch, -1.0f);
      const void *tensors[] = {samples.x.data(), out.data()};
      ASSERT_TRUE(session->run("predict", tensors, static_cast<int64_t>(n), nullptr).ok());
      for (uint64_t row = 0; row < shape.batch; ++row)
        EXPECT_EQ(out[row], row < n ? model.predict(samples, row) : -1.0f) << row;
    }
  }
}

TEST(Session, CollectivesMoveTheBytesOfARing) {
  TestPlanShape shape;
  Loaded loaded(shape);
  Samples samples(shape, 3);
  const void *tensors[] = {samples.x.data(), samples.y.data(), nullptr};
  int64_t partials = static_cast<int64_t>(shape.features + 1 + 2) * 4;
  for (int devices : {1, 2, 3, 5, 7}) { // 7 of 8 devices have samples of 21 in shards of 3
    std::unique_ptr<Session> session = makeSession(*loaded.plan, ("cpu:" + std::to_string(devices)).c_str(), true);
    ASSERT_TRUE(session->run("train_step", tensors, static_cast<int64_t>(shape.batch), nullptr).ok());
    EXPECT_EQ(session->info().collective_bytes, 2 * (devices - 1) * partials) << devices;
  }
  std::unique_ptr<Session> session = makeSession(*loaded.plan, "cpu:3", false);
  ASSERT_TRUE(session->run("train_step", tensors, 21, nullptr).ok());
  EXPECT_EQ(session->info().collective_bytes, 0);
}

TEST(Session, ACorruptedPartialSumChangesTheResult) {
  TestPlanShape shape;
  Loaded loaded(shape);
  Samples samples(shape, 3);
  std::unique_ptr<Session> good = makeSession(*loaded.plan, "cpu:2", true);
  std::unique_ptr<Session> bad = makeSession(*loaded.plan, "cpu:2", true);
  bad->corruptPartial(0, 1);
  EXPECT_FALSE(trained(*good, shape, samples) == trained(*bad, shape, samples));
}

TEST(Session, InitStartsOver) {
  TestPlanShape shape;
  Loaded loaded(shape);
  Samples samples(shape, 3);
  std::unique_ptr<Session> session = makeSession(*loaded.plan, "cpu:2");
  LinearModel first = trained(*session, shape, samples);
  ASSERT_TRUE(session->init(0).ok());
  EXPECT_EQ(trained(*session, shape, samples), first);
  ASSERT_TRUE(session->init(8).ok());
  EXPECT_EQ(session->info().seed, 8);
  EXPECT_FALSE(trained(*session, shape, samples) == first);
}

TEST(Session, TwoAtOnce) {
  TestPlanShape shape;
  Loaded loaded(shape);
  Samples samples(shape, 3);
  LinearModel want = expected(shape, samples);
  auto train = [&](const char *devices) {
    for (int i = 0; i < 20; ++i) {
      std::unique_ptr<Session> session = makeSession(*loaded.plan, devices);
      EXPECT_EQ(trained(*session, shape, samples), want);
    }
  };
  std::thread other(train, "cpu:2");
  train("cpu:3");
  other.join();
}

TEST(Session, ShardsFollowTheSplit) {
  Loaded loaded;
  std::unique_ptr<Session> session = makeSession(*loaded.plan, "cpu:3", true);
  EXPECT_EQ(session->shards(0), 2);
  EXPECT_EQ(session->shards(1), 2);
  EXPECT_EQ(session->shards(2), 4);
  EXPECT_EQ(session->shards(3), 0);
  EXPECT_EQ(session->shards(-1), 0);
  session = makeSession(*loaded.plan, "cpu:3"); // one pool
  for (int device : {0, 1, 2})
    EXPECT_EQ(session->shards(device), 8);
  EXPECT_EQ(session->shards(3), 0);
}

TEST(Session, LeavesTheCallersThreadAsItWas) {
  TestPlanShape shape;
  Loaded loaded(shape);
  Samples samples(shape, 3);
  LinearModel want = expected(shape, samples);
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
#if defined(__x86_64__)
  unsigned control = __builtin_ia32_stmxcsr();
  unsigned flushing = control | 0x8040; // denormals flushed to zero, on the way in and out
  __builtin_ia32_ldmxcsr(flushing);
#endif
  std::unique_ptr<Session> session = makeSession(*loaded.plan, "cpu:2");
  LinearModel model = trained(*session, shape, samples);
#if defined(__x86_64__)
  EXPECT_EQ(__builtin_ia32_stmxcsr() & 0xffc0, flushing & 0xffc0);
  __builtin_ia32_ldmxcsr(control);
#endif
  EXPECT_EQ(model, want);
  ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(Session, SaysWhatIsWrong) {
  Loaded loaded;
  std::unique_ptr<Session> session;
  auto create = [&](const char *devices, const char *cpu) {
    mtrun_options options = mtrun_options_init();
    options.devices = devices;
    options.cpu = cpu;
    return Session::create(*loaded.plan, &options, session);
  };
  auto expect = [](const Status &status, mt_code code, const char *message) {
    EXPECT_EQ(status.code(), code) << message;
    EXPECT_EQ(status.message(), message);
  };
  expect(create("cpu:9", nullptr), MT_INVALID,
         "expected at most 8 devices for a plan of 8 shards, found 9; recompile it with: mtc compile MODEL "
         "--shards 16");
  expect(
      create("gpu:1", nullptr), MT_INVALID,
      "expected devices as cpu:2 (two devices), cpu:2x4 (of four threads each), cuda:0, cuda:0-3, cuda:0,2 or null:N, "
      "found gpu:1; did you mean cuda:1?");
  for (const char *spec :
       {"", "cpu:", "cpu:0", "cpu:-1", "cpu:1x", "cpu:1x0", "cpu:2x2x2", "cpu:1 ", "cpu:99999999999"})
    EXPECT_EQ(create(spec, nullptr).code(), MT_INVALID) << spec;
  expect(create("cpu:2x4000", nullptr), MT_INVALID, "expected at most 1024 threads in all, found cpu:2x4000");
  expect(create(nullptr, "first"), MT_DEVICE,
         "the plan has no code that this CPU can run: first needs no-such-feature");
  expect(create(nullptr, "last"), MT_INVALID, "expected one of the plan's targets (first, any), found last");
  ASSERT_TRUE(create(nullptr, "any").ok());
  EXPECT_STREQ(session->info().target, "any");
  Samples samples({}, 3);
  const void *tensors[] = {samples.x.data(), nullptr, nullptr};
  expect(session->run("train_step", tensors, 0, nullptr), MT_INVALID, "expected 1 to 21 samples, found 0");
  expect(session->run("train_step", tensors, 22, nullptr), MT_INVALID, "expected 1 to 21 samples, found 22");
  expect(session->run("train_step", tensors, 21, nullptr), MT_INVALID, "expected a pointer for y, found null");
  expect(session->run("eval_step", tensors, 21, nullptr), MT_INVALID, "the plan has no program eval_step");
  uint32_t index;
  expect(session->findVariable("c", index), MT_INVALID,
         "expected one of the plan's variables (w, b, rate, iteration), found c");
}

TEST(Session, RefusesWhatDoesNotFit) {
  Loaded large({}, [](mt::plan::PlanT &plan) { plan.variables_bytes = uint64_t{1} << 45; });
  std::unique_ptr<Session> session;
  Status status = Session::create(*large.plan, nullptr, session);
  EXPECT_EQ(status.code(), MT_NO_MEMORY);
  EXPECT_NE(status.message().find(": expected 32768.00 GiB of memory, found "), std::string::npos) << status.message();
}

TEST(Session, RefusesFewerDevicesThanThePlanFitsOn) {
  Loaded loaded({}, [](mt::plan::PlanT &plan) { plan.min_devices = 3; });
  std::unique_ptr<Session> session;
  Status status = Session::create(*loaded.plan, nullptr, session);
  EXPECT_EQ(status.code(), MT_NO_MEMORY);
  EXPECT_EQ(status.message(),
            "expected at least 3 devices, the fewest on which the plan fits the memory it was compiled for, found 1");
  EXPECT_NE(makeSession(*loaded.plan, "cpu:3"), nullptr);
}

TEST(Session, RefusesCodeThatIsNone) {
  Loaded noKernel({}, [](mt::plan::PlanT &plan) { plan.kernels[1]->name = "missing"; });
  std::unique_ptr<Session> session;
  Status status = Session::create(*noKernel.plan, nullptr, session);
  EXPECT_EQ(status.code(), MT_CORRUPT);
  EXPECT_EQ(status.message(), "target any: expected a function missing in its code, found none");
  Loaded noElf({}, [](mt::plan::PlanT &plan) { plan.targets[1]->section = 1; });
  status = Session::create(*noElf.plan, nullptr, session);
  EXPECT_EQ(status.code(), MT_CORRUPT);
  EXPECT_EQ(status.message(), "target any: expected a shared object, found 16 bytes");
}

TEST(Session, CountsLaunches) {
  TestPlanShape shape;
  Loaded loaded(shape);
  Samples samples(shape, 3);
  const void *tensors[] = {samples.x.data(), samples.y.data(), nullptr};
  for (const char *devices : {"cpu:3", "null:3", "cpu:3x2", "null:3x2"})
    for (bool privateVariables : {false, true}) {
      std::unique_ptr<Session> session = makeSession(*loaded.plan, devices, privateVariables);
      uint64_t before = session->launches(), each = privateVariables ? 3 : 1;
      EXPECT_EQ(before, each); // init
      ASSERT_TRUE(session->run("train_step", tensors, 21, nullptr).ok());
      EXPECT_EQ(session->launches() - before, each * 5) << devices;
      before = session->launches();
      ASSERT_TRUE(session->run("train_step", tensors, 1, nullptr).ok()); // two empty devices
      EXPECT_EQ(session->launches() - before, 3 + each * 2) << devices;
    }
}

TEST(Session, VariablesGoInAndOut) {
  Loaded loaded;
  for (bool privateVariables : {false, true}) {
    std::unique_ptr<Session> session = makeSession(*loaded.plan, "cpu:2", privateVariables);
    float rate = 0.5f;
    ASSERT_TRUE(session->setVariable(2, std::as_bytes(std::span(&rate, 1))).ok());
    TestPlanShape shape;
    Samples samples(shape, 3);
    LinearModel model(shape);
    model.initialise(7);
    model.rate = rate;
    model.step(samples, shape.batch, false);
    const void *tensors[] = {samples.x.data(), samples.y.data(), nullptr};
    ASSERT_TRUE(session->run("train_step", tensors, static_cast<int64_t>(shape.batch), nullptr).ok());
    EXPECT_EQ(std::memcmp(session->variable(0).data(), model.w.data(), session->variable(0).size()), 0);
  }
}

} // namespace
} // namespace mtrun::test
