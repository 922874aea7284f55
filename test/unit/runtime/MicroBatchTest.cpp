// SPDX-License-Identifier: Apache-2.0
//
// Micro-batches: the same bits in less memory, and which steps run for each of them.
#include "Training.h"

#include "runtime/support/phases.h"

#include <gtest/gtest.h>

namespace mtrun::test {
namespace {

Status create(const Plan &plan, const char *devices, bool privateVariables, int64_t microBatches,
              std::unique_ptr<Session> &session) {
  mtrun_options options = mtrun_options_init();
  options.devices = devices;
  options.private_variables = privateVariables;
  options.micro_batches = microBatches;
  return Session::create(plan, &options, session);
}

TEST(MicroBatches, SameBitsAsTheWholeBatch) {
  for (TestPlanShape shape : {TestPlanShape{21, 8, 37}, TestPlanShape{5, 8, 16}, TestPlanShape{33, 16, 40}}) {
    Loaded loaded(shape);
    Samples samples(shape, 3);
    LinearModel want = expected(shape, samples);
    for (const char *devices : {"cpu", "cpu:1x2", "cpu:3", "cpu:8"})
      for (bool privateVariables : {false, true})
        for (int64_t microBatches = 1; microBatches <= shape.shards; microBatches *= 2) {
          std::unique_ptr<Session> session;
          Status status = create(*loaded.plan, devices, privateVariables, microBatches, session);
          ASSERT_TRUE(status.ok()) << status.message();
          EXPECT_EQ(trained(*session, shape, samples), want)
              << microBatches << " micro-batches, " << devices << " private " << privateVariables << " batch "
              << shape.batch << " features " << shape.features;
        }
  }
}

TEST(MicroBatches, OutputsAreRowsOfTheBatch) {
  TestPlanShape shape;
  Loaded loaded(shape);
  Samples samples(shape, 5);
  LinearModel model(shape);
  model.initialise(7);
  for (const char *devices : {"cpu:1", "cpu:3x2"})
    for (bool privateVariables : {false, true})
      for (uint64_t n : {uint64_t{1}, uint64_t{10}, shape.batch}) {
        std::unique_ptr<Session> session;
        ASSERT_TRUE(create(*loaded.plan, devices, privateVariables, 4, session).ok());
        std::vector<float> out(shape.batch, -1.0f);
        const void *tensors[] = {samples.x.data(), out.data()};
        ASSERT_TRUE(session->run("predict", tensors, static_cast<int64_t>(n), nullptr).ok());
        for (uint64_t row = 0; row < shape.batch; ++row)
          EXPECT_EQ(out[row], row < n ? model.predict(samples, row) : -1.0f) << row;
      }
}

TEST(MicroBatches, TakeLessMemory) {
  TestPlanShape shape{100000, 8, 3}; // the arena has a number a row, and a few more
  Loaded loaded(shape);
  int64_t whole = 0;
  for (int64_t microBatches : {1, 2, 4, 8}) {
    std::unique_ptr<Session> session;
    ASSERT_TRUE(create(*loaded.plan, "cpu", false, microBatches, session).ok());
    int64_t bytes = session->info().peak_bytes;
    whole = microBatches == 1 ? bytes : whole;
    EXPECT_LE(bytes, whole / microBatches + 1024) << microBatches;
  }
}

TEST(MicroBatches, AreAPowerOfTwoUpToTheShards) {
  Loaded loaded;
  for (int64_t wrong : {-1, 3, 16}) {
    std::unique_ptr<Session> session;
    Status status = create(*loaded.plan, "cpu", false, wrong, session);
    EXPECT_EQ(status.code(), MT_INVALID);
    EXPECT_EQ(status.message(), "expected a power of two up to 8, the shards of the plan, for micro-batches, found " +
                                    std::to_string(wrong));
  }
}

// The steps of each phase: "0 1 3* |" for two that run for each micro-batch and one that runs once.
std::string textOf(const std::vector<Phase> &phases) {
  std::string text;
  for (const Phase &phase : phases) {
    text += phase.repeats ? "each" : "once";
    for (const PhaseStep &step : phase.steps)
      text += " " + std::to_string(step.step) + (step.once ? "*" : "") + (step.waits ? "w" : "");
    text += "; ";
  }
  return text;
}

TEST(MicroBatches, AStepHasOnePhaseWhereOnlyTheUpdateReadsSums) {
  Loaded loaded;
  std::vector<Phase> phases;
  ASSERT_TRUE(phasesOf(loaded.plan->tables(), *loaded.plan->program("train_step"), 0, phases).ok());
  EXPECT_EQ(textOf(phases), "each 0 1w 2 3 4 5*w 6*; ");
  ASSERT_TRUE(phasesOf(loaded.plan->tables(), *loaded.plan->program("predict"), 0, phases).ok());
  EXPECT_EQ(textOf(phases), "each 0; ");
  ASSERT_TRUE(phasesOf(loaded.plan->tables(), *loaded.plan->program("init"), 0, phases).ok());
  EXPECT_EQ(textOf(phases), "once 0*; ");
}

// The loss's sums come first, and the gradient reads them: of the differences, too, it needs all.
void readSumsEarly(mt::plan::PlanT &plan, uint64_t flopsOfDifferences) {
  auto &program = *plan.programs[1];
  ASSERT_EQ(program.name, "train_step");
  std::swap(program.steps[1], program.steps[2]); // differences, loss, gradient, all-reduce 0, all-reduce 1
  std::swap(program.steps[3], program.steps[4]);
  std::swap(program.steps[2], program.steps[3]); // differences, loss, all-reduce, gradient, all-reduce
  std::swap(program.steps[2]->collective, program.steps[4]->collective);
  mt::plan::StepT &finish = *program.steps[5], &gradient = *program.steps[3];
  gradient.segments[0]->buffers[0] = finish.segments[0]->buffers[0];
  mt::plan::KernelT &kernel = *plan.kernels[static_cast<size_t>(gradient.kernel)];
  kernel.arguments[0]->fixed_bytes = 2 * sizeof(float);
  kernel.flops_per_row = 1000;
  plan.kernels[static_cast<size_t>(program.steps[0]->kernel)]->flops_per_row = flopsOfDifferences;
}

TEST(MicroBatches, APhaseEndsWhereAStepReadsASum) {
  Loaded loaded({}, [](mt::plan::PlanT &plan) { readSumsEarly(plan, 100); });
  std::vector<Phase> phases;
  Status status = phasesOf(loaded.plan->tables(), *loaded.plan->program("train_step"), 1, phases);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(textOf(phases), "each 0 1 2; each 0 3w 4 5*w 6*; ");
}

TEST(MicroBatches, RefusesToRunMuchAgain) {
  Loaded loaded({}, [](mt::plan::PlanT &plan) { readSumsEarly(plan, 500); });
  std::unique_ptr<Session> session;
  Status status = create(*loaded.plan, "cpu", false, 2, session);
  EXPECT_EQ(status.code(), MT_INVALID);
  EXPECT_EQ(status.message(),
            "train_step: expected layers that do not wait for the whole batch, for micro-batches, found "
            "gradient_partial; if it normalises the batch, compile the model with --batch-norm local");
  EXPECT_TRUE(create(*loaded.plan, "cpu:8", true, 8, session).ok()); // one each
}

} // namespace
} // namespace mtrun::test
