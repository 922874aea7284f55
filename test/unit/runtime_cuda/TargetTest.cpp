// SPDX-License-Identifier: Apache-2.0
//
// Which of a plan's targets a GPU takes.
#include "TestPlan.h"

#include "runtime/abi/plan_header.h"
#include "runtime/device/cuda/Gpus.h"

#include <gtest/gtest.h>

namespace mtrun::test {
namespace {

std::unique_ptr<Plan> planFor(const std::vector<std::pair<const char *, const char *>> &targets) {
  TestPlanShape shape;
  shape.gpu = true;
  std::vector<uint8_t> bytes = makePlan(shape, [&](mt::plan::PlanT &plan) {
    plan.targets.pop_back();
    for (auto [name, feature] : targets) {
      auto target = std::make_unique<mt::plan::TargetT>();
      target->name = name;
      target->device = "cuda";
      target->features = {feature};
      plan.targets.push_back(std::move(target));
    }
  });
  std::unique_ptr<Plan> plan;
  Status status = Plan::loadMemory(bytes.data(), bytes.size(), plan);
  EXPECT_TRUE(status.ok()) << status.message();
  return plan;
}

// The target's name, or the status.
std::string chosen(const Plan &plan, int major, int minor, const char *forced = nullptr) {
  std::vector<uint32_t> indices;
  Status status = cuda::chooseTargets(plan, forced, major, minor, indices);
  return status.ok() ? plan.tables().targets()->Get(indices[0])->name()->str()
                     : std::to_string(status.code()) + ": " + status.message();
}

TEST(CudaTarget, CodeOfTheGpusMajorNumberAndTheHighestMinorNumberThatItHas) {
  std::unique_ptr<Plan> plan = planFor({{"cuda:sm_75", "sm_75"},
                                        {"cuda:sm_80", "sm_80"},
                                        {"cuda:sm_86", "sm_86"},
                                        {"cuda:sm_90", "sm_90"},
                                        {"cuda:ptx", "compute_75"}});
  EXPECT_EQ(chosen(*plan, 7, 5), "cuda:sm_75");
  EXPECT_EQ(chosen(*plan, 8, 0), "cuda:sm_80");
  EXPECT_EQ(chosen(*plan, 8, 6), "cuda:sm_86");
  EXPECT_EQ(chosen(*plan, 8, 9), "cuda:sm_86");
  EXPECT_EQ(chosen(*plan, 9, 0), "cuda:sm_90");
  EXPECT_EQ(chosen(*plan, 10, 0), "cuda:ptx");
  EXPECT_EQ(chosen(*plan, 12, 0), "cuda:ptx");
  EXPECT_EQ(chosen(*plan, 9, 0, "cuda:ptx"), "cuda:ptx");
  EXPECT_EQ(chosen(*plan, 7, 0),
            "5: expected code for a GPU of compute capability 7.0 in the plan, found cuda:sm_75, cuda:sm_80, "
            "cuda:sm_86, cuda:sm_90, cuda:ptx; recompile the plan with: mtc compile MODEL --target cuda:sm_70");
  EXPECT_EQ(chosen(*plan, 9, 0, "cuda:sm_80"),
            "5: expected code for a GPU of compute capability 9.0 in the plan, found cuda:sm_80; recompile the plan "
            "with: mtc compile MODEL --target cuda:sm_90");
  EXPECT_EQ(chosen(*plan, 9, 0, "cuda:sm_91"), "1: expected one of the plan's targets (cuda:sm_75, cuda:sm_80, "
                                               "cuda:sm_86, cuda:sm_90, cuda:ptx), found cuda:sm_91");
}

// A driver that refuses one may take the next.
TEST(CudaTarget, TheOthersThatFitFollow) {
  std::unique_ptr<Plan> plan =
      planFor({{"cuda:ptx", "compute_75"}, {"cuda:sm_80", "sm_80"}, {"cuda:sm_90", "sm_90"}, {"cuda:sm_86", "sm_86"}});
  std::vector<uint32_t> indices;
  EXPECT_TRUE(cuda::chooseTargets(*plan, nullptr, 8, 9, indices).ok());
  std::string names;
  for (uint32_t index : indices)
    names += plan->tables().targets()->Get(index)->name()->str() + " ";
  EXPECT_EQ(names, "cuda:sm_86 cuda:sm_80 cuda:ptx ");
}

// Code of an older plan takes its pointers from elsewhere.
TEST(CudaTarget, CodeOfAnOlderFormatIsRefused) {
  TestPlanShape shape;
  shape.gpu = true;
  std::vector<uint8_t> bytes = makePlan(shape);
  mt_plan_header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  ASSERT_EQ(header.version, MT_PLAN_GPU_VERSION);
  header.version = MT_PLAN_VERSION;
  std::memcpy(bytes.data(), &header, sizeof(header));
  auto *tables = flatbuffers::GetMutableRoot<flatbuffers::Table>(bytes.data() + header.tables_offset);
  ASSERT_TRUE(tables->SetField<uint32_t>(mt::plan::Plan::VT_VERSION, MT_PLAN_VERSION, 0));
  rehash(bytes);
  std::unique_ptr<Plan> plan;
  Status status = Plan::loadMemory(bytes.data(), bytes.size(), plan);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(chosen(*plan, 0, 0), "5: expected code for GPUs of plan format version 11 or newer, found version 8; "
                                 "recompile the plan with: mtc compile MODEL --target cuda:sm_00");
}

TEST(CudaTarget, SimulatedCodeIsForTheSimulatedGpuAlone) {
  std::unique_ptr<Plan> plan = planFor({{"cuda:sm_90", "sm_90"}, {"cuda:simulated", "simulated"}});
  EXPECT_EQ(chosen(*plan, 0, 0), "cuda:simulated");
  EXPECT_EQ(chosen(*plan, 9, 0), "cuda:sm_90");
  EXPECT_EQ(chosen(*plan, 8, 0).substr(0, 2), "5:");
}

} // namespace
} // namespace mtrun::test
