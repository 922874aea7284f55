// SPDX-License-Identifier: Apache-2.0
//
// Which sums of roots wait for the launch that reads them.
#include "TestPlan.h"

#include "runtime/plan/Plan.h"
#include "runtime/session/LateSums.h"

#include <gtest/gtest.h>

namespace mtrun::test {
namespace {

constexpr uint64_t features = 37, weights = features * sizeof(float);

// train_step's late sums for tiles of `elementsPerTile`, in a plan whose gradient of w is a buffer without b's.
std::vector<LateSum> lateSumsOf(int64_t elementsPerTile, const std::function<void(mt::plan::ProgramT &)> &change = {}) {
  std::vector<uint8_t> bytes = makePlan({}, [&](mt::plan::PlanT &plan) {
    for (auto &program : plan.programs)
      if (program->name == "train_step") {
        for (auto &buffer : program->buffers)
          if (buffer->space == mt::plan::Space::Shared && buffer->fixed_bytes == weights + sizeof(float))
            buffer->fixed_bytes = weights;
        if (change)
          change(*program);
      }
  });
  std::unique_ptr<Plan> plan;
  Status status = Plan::loadMemory(bytes.data(), bytes.size(), plan);
  EXPECT_TRUE(status.ok());
  for (uint32_t i = 0; status.ok() && i < plan->tables().programs()->size(); ++i)
    if (const auto *program = plan->tables().programs()->Get(i); program->name()->str() == "train_step")
      return lateSums(plan->tables(), *program, elementsPerTile);
  return {};
}

TEST(LateSums, AreThoseThatOneMapReads) {
  std::vector<LateSum> late = lateSumsOf(5);
  ASSERT_EQ(late.size(), 2u);
  EXPECT_EQ(late[0].first, 0);
  EXPECT_EQ(late[0].count, static_cast<int64_t>(features));
  EXPECT_EQ(late[1].first, static_cast<int64_t>(features));
  EXPECT_EQ(late[1].count, 1);
  EXPECT_EQ(late[0].step, late[1].step);
  EXPECT_TRUE(earlyRanges(late, 0, features + 1).empty());
  EXPECT_EQ(earlyRanges(late, 1, 2), (std::vector<std::pair<int64_t, int64_t>>{{0, 2}}));
  late.erase(late.begin());
  EXPECT_EQ(earlyRanges(late, 0, features + 1), (std::vector<std::pair<int64_t, int64_t>>{{0, features}}));
}

TEST(LateSums, NeedTilesOfOneSize) { EXPECT_TRUE(lateSumsOf(4).empty()); }

TEST(LateSums, NeedASharedLaunchAndNoOtherReader) {
  EXPECT_TRUE(lateSumsOf(5, [](mt::plan::ProgramT &program) { program.steps.back()->share = false; }).empty());
  EXPECT_TRUE(lateSumsOf(5, [](mt::plan::ProgramT &program) {
                auto again = std::make_unique<mt::plan::StepT>(*program.steps.back());
                program.steps.push_back(std::move(again));
              }).empty());
}

} // namespace
} // namespace mtrun::test
