// SPDX-License-Identifier: Apache-2.0
//
// Steps in flight on simulated GPUs, several of them in a launch, and what is taken down of them: the same bits.
#include "../runtime/Training.h"

#include "Child.h"

namespace mtrun::test {
namespace {

TestPlanShape gpuShape() {
  TestPlanShape shape;
  shape.gpu = true;
  return shape;
}

std::unique_ptr<Session> sessionOf(const Loaded &loaded, const char *devices, int64_t stepsPerLaunch = 1) {
  mtrun_options options = mtrun_options_init();
  options.devices = devices;
  options.steps_per_launch = stepsPerLaunch;
  std::unique_ptr<Session> session;
  Status status = Session::create(*loaded.plan, &options, session);
  EXPECT_TRUE(status.ok()) << status.message();
  return session;
}

// The steps of trained(), as many under way as there may be: the host overwrites a step's tensors once it began.
struct Steps {
  explicit Steps(Session &session) : session(session) {}

  Status run(LinearModel &model) {
    size_t together = static_cast<size_t>(session.stepsPerLaunch("train_step")), begun = 0;
    for (size_t done = 0; done < 4; ++done) {
      while (begun < 4 && begun + together <= done + together * static_cast<size_t>(session.maxInFlight())) {
        if (Status status = begin(begun, std::min(together, 4 - begun)); !status.ok())
          return status;
        begun += together;
      }
      double loss = 0, weight = 0;
      mtrun_results results = {&loss, &weight, nullptr, nullptr};
      if (Status status = session.finish(&results); !status.ok())
        return status;
      model.losses.push_back(loss);
      model.losses.push_back(weight);
    }
    readVariables(session, model);
    return session.health();
  }

  Status begin(size_t first, size_t count) {
    uint64_t sizes[] = {shape.batch, shape.batch / 2 + 1, shape.batch, 1};
    std::vector<Samples> given(count, samples);
    std::vector<std::vector<const void *>> tensors(count);
    std::vector<Session::Step> steps;
    for (size_t i = 0; i < count; ++i) {
      tensors[i] = {given[i].x.data(), given[i].y.data(), (first + i) % 2 ? given[i].weights.data() : nullptr};
      steps.push_back({tensors[i].data(), static_cast<int64_t>(sizes[first + i])});
    }
    Status status = session.begin("train_step", steps);
    for (Samples &samples : given)
      samples.spoilFrom(0);
    return status;
  }

  Session &session;
  TestPlanShape shape = gpuShape();
  Samples samples{shape, 3};
};

// In a child for each order of the simulated driver.
void expectSuccess(const std::function<Status()> &body) {
  for (const char *order : {"1", "2", "3"})
    EXPECT_EQ(inChild({{"MTC_SIM_DEVICES", "3"}, {"MTC_SIM_ORDER", order}}, body), "0") << "order " << order;
}

TEST(CudaFlight, SameBitsWithStepsInFlightAndInOneLaunch) {
  expectSuccess([] {
    Loaded loaded(gpuShape());
    LinearModel want = expected(gpuShape(), Samples(gpuShape(), 3));
    for (const char *devices : {"cuda:0", "cuda:0-2", "cuda:0*4"})
      for (int64_t stepsPerLaunch : {1, 2, 4}) {
        std::unique_ptr<Session> session = sessionOf(loaded, devices, stepsPerLaunch);
        LinearModel model(gpuShape());
        Status status = Steps(*session).run(model);
        EXPECT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(model, want) << devices << ", " << stepsPerLaunch << " steps a launch";
      }
    return Status();
  });
}

TEST(CudaFlight, VariablesAreReadAndSetBetweenSteps) {
  expectSuccess([] {
    Loaded loaded(gpuShape());
    TestPlanShape shape = gpuShape();
    Samples samples(shape, 3);
    LinearModel want(shape);
    want.initialise(7);
    std::unique_ptr<Session> session = sessionOf(loaded, "cuda:0-2");
    Steps steps(*session);
    uint64_t changes = session->changes();
    EXPECT_TRUE(steps.begin(0, 1).ok());
    want.step(samples, shape.batch, false);
    std::span<const std::byte> w = session->variable(0);
    EXPECT_EQ(std::memcmp(w.data(), want.w.data(), w.size()), 0);
    EXPECT_EQ(session->changes(), changes);
    std::fill(want.w.begin(), want.w.end(), 0.25f);
    EXPECT_TRUE(session->setVariable(0, std::as_bytes(std::span(want.w))).ok());
    EXPECT_GT(session->changes(), changes);
    EXPECT_TRUE(steps.begin(1, 1).ok());
    want.step(samples, shape.batch / 2 + 1, true);
    EXPECT_TRUE(session->finish(nullptr).ok());
    EXPECT_TRUE(session->finish(nullptr).ok());
    w = session->variable(0);
    EXPECT_EQ(std::memcmp(w.data(), want.w.data(), w.size()), 0);
    return session->health();
  });
}

TEST(CudaFlight, OneProgramAtATime) {
  EXPECT_EQ(inChild({},
                    [] {
                      Loaded loaded(gpuShape());
                      std::unique_ptr<Session> session = sessionOf(loaded, "cuda:0", 2);
                      Steps steps(*session);
                      const void *tensors[] = {steps.samples.x.data(), steps.samples.y.data(), nullptr};
                      EXPECT_EQ(session->finish(nullptr).code(), MT_INVALID);
                      EXPECT_TRUE(steps.begin(0, 2).ok());
                      EXPECT_EQ(session->inFlight(), 2u);
                      EXPECT_EQ(session->run("train_step", tensors, 3, nullptr).code(), MT_INVALID);
                      EXPECT_EQ(session->init(1).code(), MT_INVALID);
                      EXPECT_EQ(session->startTrace({}).code(), MT_INVALID);
                      Session::Step step = {tensors, 3};
                      EXPECT_EQ(session->begin("predict", {&step, 1}).code(), MT_INVALID);
                      step.n = 0;
                      EXPECT_EQ(session->begin("train_step", {&step, 1}).code(), MT_INVALID);
                      EXPECT_EQ(session->inFlight(), 2u);
                      EXPECT_TRUE(steps.begin(2, 1).ok());
                      EXPECT_EQ(steps.begin(3, 1).code(), MT_INVALID);
                      EXPECT_EQ(session->inFlight(), 3u);
                      EXPECT_TRUE(session->finish(nullptr).ok());
                      EXPECT_EQ(steps.begin(3, 1).code(), MT_INVALID);
                      EXPECT_TRUE(session->finish(nullptr).ok());
                      EXPECT_TRUE(steps.begin(3, 1).ok());
                      mtrun_options options = mtrun_options_init();
                      options.steps_per_launch = -1;
                      std::unique_ptr<Session> refused;
                      EXPECT_EQ(Session::create(*loaded.plan, &options, refused).code(), MT_INVALID);
                      return session->health(); // and ends with two steps in flight
                    }),
            "0");
}

TEST(CudaFlight, AFailureShowsWhenItsStepIsFinished) {
  std::string found = inChild({{"MTC_SIM_LOST", "3"}}, [] { // the first is init's
    Loaded loaded(gpuShape());
    std::unique_ptr<Session> session = sessionOf(loaded, "cuda:0");
    Steps steps(*session);
    EXPECT_TRUE(steps.begin(0, 1).ok());
    EXPECT_TRUE(steps.begin(1, 1).ok());
    (void)session->finish(nullptr);
    return session->finish(nullptr);
  });
  EXPECT_EQ(found, "9: cuda:0 (Simulated GPU): the GPU failed in a step: CUDA_ERROR_LAUNCH_FAILED: unspecified launch "
                   "failure");
}

TEST(CudaFlight, ATraceHasEachOperationAndChangesNoBit) {
  expectSuccess([] {
    Loaded loaded(gpuShape());
    LinearModel want = expected(gpuShape(), Samples(gpuShape(), 3));
    for (const char *devices : {"cuda:0", "cuda:0-2"}) {
      std::unique_ptr<Session> session = sessionOf(loaded, devices, 2);
      TracerOptions options;
      options.first = 2;
      options.last = 3;
      Status status = session->startTrace(options);
      EXPECT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(session->stepsPerLaunch("train_step"), 1);
      LinearModel model(gpuShape());
      EXPECT_TRUE(Steps(*session).run(model).ok());
      EXPECT_EQ(model, want) << devices;
      const Tracer &tracer = *session->tracer();
      EXPECT_EQ(tracer.seen(), 4);
      EXPECT_EQ(tracer.recorded(), 2);
      size_t devicesThere = static_cast<size_t>(session->groupDevices());
      EXPECT_EQ(tracer.tracks().size(), devicesThere > 1 ? 2 * devicesThere : 1);
      uint32_t launches = 0;
      for (const Track &track : tracer.tracks()) {
        int64_t last = 0;
        for (const Span &span : track.spans()) {
          EXPECT_GE(span.begin, last);
          EXPECT_GT(span.end, span.begin);
          EXPECT_GE(span.begin, tracer.runs()[span.run].begin);
          EXPECT_LE(span.end, tracer.runs()[span.run].end);
          last = span.end;
          launches += span.kind == SpanKind::Kernel;
        }
      }
      uint32_t kernels = 0;
      for (const auto *step : *loaded.plan->program("train_step")->steps())
        kernels += step->kernel() >= 0;
      EXPECT_EQ(launches, 2 * kernels * devicesThere);
    }
    return Status();
  });
}

// A session, and `body` with it. What the N-th call that fails gives.
std::string faultAt(long call, const std::function<Status(Session &)> &body, std::string &log) {
  return inChild(
      {{"MTC_SIM_FAIL", std::to_string(call)}},
      [&] {
        static Loaded loaded(gpuShape());
        mtrun_options options = mtrun_options_init();
        options.devices = "cuda:0";
        std::unique_ptr<Session> session;
        if (Status status = Session::create(*loaded.plan, &options, session); !status.ok())
          return status;
        return body(*session);
      },
      &log);
}

// Two launches in flight, then a traced step. Calls that make a session fail in FaultTest.cpp; those that free one are
// fewer than a hundred.
TEST(CudaFlight, EveryCallInTurn) {
  std::string log;
  long made = 0;
  EXPECT_EQ(faultAt(1'000'000, [](Session &) { return Status(); }, log), "0");
  ASSERT_EQ(std::sscanf(log.c_str(), "simulated CUDA driver: call 1000000 was not reached, there were %ld", &made), 1);
  int failures = 0;
  for (long call = std::max(1L, made - 100);; ++call) {
    ASSERT_LT(call, 5000) << "no end of calls";
    std::string found = faultAt(
        call,
        [](Session &session) {
          TracerOptions traced;
          traced.first = traced.last = 3;
          if (Status status = session.startTrace(traced); !status.ok())
            return status;
          LinearModel model(gpuShape());
          Status status = Steps(session).run(model);
          if (status.ok())
            EXPECT_EQ(model, expected(gpuShape(), Samples(gpuShape(), 3)));
          return status;
        },
        log);
    if (found == "0") { // a call that frees, or one that only tells
      if (log.find("was not reached") != std::string::npos)
        break;
      continue;
    }
    ++failures;
    int code = std::atoi(found.c_str());
    ASSERT_TRUE(code == MT_DEVICE || code == MT_NO_MEMORY || code == MT_NO_DEVICE || code == MT_LOST)
        << "call " << call << ": " << found << "\n"
        << log;
    ASSERT_NE(found.find("CUDA_ERROR"), std::string::npos) << "call " << call << ": " << found << "\n" << log;
  }
  EXPECT_GT(failures, 50);
}

} // namespace
} // namespace mtrun::test
