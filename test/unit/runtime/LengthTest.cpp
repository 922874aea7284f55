// SPDX-License-Identifier: Apache-2.0
//
// Plans for sequences of several lengths: which program a step takes, its tensors, and what the tables must be.
#include "Corrupt.h"
#include "Training.h"

#include <gtest/gtest.h>

namespace mtrun::test {
namespace {

namespace fb = ::mt::plan;

constexpr uint64_t shortLength = 37, largestLength = 74;

// The programs of the model have length 37; the new ones behind them, of twice the length, have the names.
void addLengths(fb::PlanT &plan) {
  auto shorter = std::make_unique<fb::LengthT>(), largest = std::make_unique<fb::LengthT>();
  shorter->length = shortLength;
  largest->length = largestLength;
  for (auto [name, index] : {std::pair("train_step", &fb::LengthT::train_step), {"predict", &fb::LengthT::predict}}) {
    size_t at = 0;
    while (plan.programs[at]->name != name)
      ++at;
    auto longer = std::make_unique<fb::ProgramT>(*plan.programs[at]);
    plan.programs[at]->name += "_37";
    for (auto &entry : longer->signature)
      if (entry->name == "x") {
        entry->shape[1] = largestLength;
        entry->row_bytes = largestLength * sizeof(float);
      }
    for (auto &buffer : longer->buffers)
      if (buffer->space == fb::Space::Signature && longer->signature[buffer->index]->name == "x")
        buffer->row_bytes = largestLength * sizeof(float);
    (*shorter).*index = static_cast<int32_t>(at);
    (*largest).*index = static_cast<int32_t>(plan.programs.size());
    plan.programs.push_back(std::move(longer));
  }
  plan.lengths.clear();
  plan.lengths.push_back(std::move(shorter));
  plan.lengths.push_back(std::move(largest));
}

// The rows of samples, with zeros behind.
std::vector<float> padded(const Samples &samples, uint64_t rows) {
  std::vector<float> x(rows * largestLength);
  for (uint64_t row = 0; row < rows; ++row)
    std::copy_n(samples.x.begin() + static_cast<std::ptrdiff_t>(row * shortLength), shortLength,
                x.begin() + static_cast<std::ptrdiff_t>(row * largestLength));
  return x;
}

TEST(Lengths, AStepTakesTheSmallestThatHoldsItsSamples) {
  TestPlanShape shape;
  Loaded loaded(shape, addLengths);
  Samples samples(shape, 3);
  std::vector<float> x = padded(samples, shape.batch);
  for (const char *devices : {"cpu:1", "cpu:3", "cpu:8"})
    for (bool privateVariables : {false, true}) {
      std::unique_ptr<Session> session = makeSession(*loaded.plan, devices, privateVariables);
      EXPECT_EQ(session->maxInFlight(), 1);
      LinearModel model(shape);
      uint64_t sizes[] = {shape.batch, shape.batch / 2 + 1, shape.batch, 1};
      for (int step = 0; step < 4; ++step) {
        session->fillTemporaries(0xff);
        double loss = 0, weight = 0;
        mtrun_results results = {&loss, &weight, nullptr, nullptr};
        const void *tensors[] = {x.data(), samples.y.data(), step % 2 ? samples.weights.data() : nullptr};
        // A row behind the step's says nothing.
        if (sizes[step] < shape.batch)
          x[sizes[step] * largestLength + largestLength - 1] = 1;
        ASSERT_TRUE(session->run("train_step", tensors, static_cast<int64_t>(sizes[step]), &results).ok());
        if (sizes[step] < shape.batch)
          x[sizes[step] * largestLength + largestLength - 1] = 0;
        model.losses.push_back(loss);
        model.losses.push_back(weight);
      }
      readVariables(*session, model);
      EXPECT_EQ(model, expected(shape, samples)) << devices << " " << privateVariables;
      EXPECT_EQ(session->lengthSteps(), (std::vector<int64_t>{4, 0}));
    }
}

TEST(Lengths, TheLastElementThatIsNotZeroDecides) {
  TestPlanShape shape;
  Loaded loaded(shape, addLengths);
  std::unique_ptr<Session> session = makeSession(*loaded.plan, "cpu:2");
  std::vector<float> x(shape.batch * largestLength), out(shape.batch);
  const void *tensors[] = {x.data(), out.data()};
  auto longSteps = [&] {
    EXPECT_TRUE(session->run("predict", tensors, static_cast<int64_t>(shape.batch), nullptr).ok());
    return session->lengthSteps()[1];
  };
  EXPECT_EQ(longSteps(), 0); // samples of no positions at all
  for (uint64_t row : {uint64_t{0}, shape.batch / 2, shape.batch - 1}) {
    int64_t before = session->lengthSteps()[1];
    x[row * largestLength + shortLength - 1] = 1;
    EXPECT_EQ(longSteps(), before) << row;
    x[row * largestLength + shortLength] = -0.0f;
    EXPECT_EQ(longSteps(), before) << row;
    x[row * largestLength + shortLength] = 1e-45f;
    EXPECT_EQ(longSteps(), before + 1) << row;
    x[row * largestLength + shortLength] = 0;
    x[row * largestLength + largestLength - 1] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(longSteps(), before + 2) << row;
    x[row * largestLength + largestLength - 1] = 0;
  }
}

TEST(Lengths, WrongStepsAreRefusedAsEver) {
  TestPlanShape shape;
  Loaded loaded(shape, addLengths);
  std::unique_ptr<Session> session = makeSession(*loaded.plan, "cpu:1");
  std::vector<float> x(shape.batch * largestLength);
  const void *tensors[] = {x.data(), nullptr};
  EXPECT_EQ(session->run("predict", tensors, 1, nullptr).message(), "expected a pointer for out, found null");
  EXPECT_EQ(session->run("predict", tensors, 22, nullptr).message(), "expected 1 to 21 samples, found 22");
  EXPECT_EQ(session->run("predict", tensors, 0, nullptr).message(), "expected 1 to 21 samples, found 0");
  EXPECT_EQ(session->run("eval_step", tensors, 1, nullptr).message(), "the plan has no program eval_step");
  mtrun_options options = mtrun_options_init();
  options.steps_per_launch = 4;
  std::unique_ptr<Session> other;
  EXPECT_EQ(Session::create(*loaded.plan, &options, other).message(),
            "expected 1 step per launch of a plan of several lengths, which each step chooses from, found 4");
}

struct LengthCase {
  const char *message; // a part of it
  void (*change)(fb::PlanT &plan);
};

fb::ProgramT &named(fb::PlanT &plan, const char *name) {
  for (auto &program : plan.programs)
    if (program->name == name)
      return *program;
  std::abort();
}

const LengthCase lengthCases[] = {
    {"lengths: expected 2 to 64, found 1", [](fb::PlanT &p) { p.lengths.pop_back(); }},
    {"lengths: expected 2 to 64, found 65",
     [](fb::PlanT &p) {
       while (p.lengths.size() < 65)
         p.lengths.push_back(std::make_unique<fb::LengthT>());
     }},
    {"length_input: expected none in a plan of one length, found x",
     [](fb::PlanT &p) {
       p.lengths.clear();
       p.length_input = "x";
     }},
    {"length_input: expected a name without control characters", [](fb::PlanT &p) { p.length_input = "\n"; }},
    {"program train_step: expected an input that says how long a sample is, found y",
     [](fb::PlanT &p) { p.length_input = "y"; }},
    {"length 1: expected more than 74 and at most 2^24, found 74",
     [](fb::PlanT &p) { p.lengths[0]->length = largestLength; }},
    {"length 0: expected more than 0 and at most 2^24, found 0", [](fb::PlanT &p) { p.lengths[0]->length = 0; }},
    {"length 1: expected more than 37 and at most 2^24, found 4294967296",
     [](fb::PlanT &p) { p.lengths[1]->length = uint64_t{1} << 32; }},
    {"length 0: expected a program for train_step below 5, found 5",
     [](fb::PlanT &p) { p.lengths[0]->train_step = 5; }},
    {"length 0: expected a program for predict below 5, found -2", [](fb::PlanT &p) { p.lengths[0]->predict = -2; }},
    {"length 1: expected a program of its own, found train_step_37",
     [](fb::PlanT &p) { p.lengths[1]->train_step = p.lengths[0]->train_step; }},
    {"length 0: expected predict as the largest length has it, found -1",
     [](fb::PlanT &p) { p.lengths[0]->predict = -1; }},
    {"length 1: expected the program predict, found -1", [](fb::PlanT &p) { p.lengths[1]->predict = -1; }},
    {"length 1: expected the program train_step",
     [](fb::PlanT &p) { std::swap(p.lengths[0]->train_step, p.lengths[1]->train_step); }},
    {"program train_step_37 of length 36: expected the entry x of train_step whose shape differs only in the axis "
     "after the batch axis",
     [](fb::PlanT &p) { p.lengths[0]->length = 36; }},
    {"expected the entry y of train_step", [](fb::PlanT &p) { named(p, "train_step_37").signature[1]->name = "z"; }},
    {"expected the entry sample_weight of train_step",
     [](fb::PlanT &p) { named(p, "train_step").signature[2]->limit = 3; }},
    {"program predict_37 of length 37: expected 2 signature entries, found 3",
     [](fb::PlanT &p) {
       fb::ProgramT &program = named(p, "predict_37");
       program.signature.push_back(std::make_unique<fb::SignatureEntryT>(*program.signature[0]));
       program.signature.back()->name = "other";
     }},
    {"program train_step_37 of length 37: expected the metric",
     [](fb::PlanT &p) { named(p, "train_step_37").metrics[0]->name = "other"; }},
    {"program train_step_37 of length 37: expected 1 metrics, found 0",
     [](fb::PlanT &p) { named(p, "train_step_37").metrics.clear(); }},
};

TEST(Lengths, RefusesEachFaultOfTables) {
  for (const LengthCase &c : lengthCases) {
    std::vector<uint8_t> bytes = makePlan({}, [&](fb::PlanT &plan) {
      addLengths(plan);
      c.change(plan);
    });
    expectCorrupt(bytes, c.message);
  }
}

} // namespace
} // namespace mtrun::test
