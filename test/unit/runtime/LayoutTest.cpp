// SPDX-License-Identifier: Apache-2.0
//
// Which shards a device hosts, in which order partial sums are added, which code a CPU takes.
#include "TestPlan.h"

#include "runtime/device/CodeObject.h"
#include "runtime/device/Collectives.h"
#include "runtime/device/CpuFeatures.h"
#include "runtime/support/device_spec.h"
#include "runtime/support/subtrees.h"

#include <gtest/gtest.h>
#include <numeric>
#include <string>

namespace mtrun::test {
namespace {

TEST(Layout, TheLargestSubtreeIsSplit) {
  EXPECT_EQ(splitShards(1, 1), (std::vector<int>{1}));
  EXPECT_EQ(splitShards(8, 1), (std::vector<int>{8}));
  EXPECT_EQ(splitShards(8, 2), (std::vector<int>{4, 4}));
  EXPECT_EQ(splitShards(8, 3), (std::vector<int>{2, 2, 4}));
  EXPECT_EQ(splitShards(8, 5), (std::vector<int>{1, 1, 2, 2, 2}));
  EXPECT_EQ(splitShards(8, 7), (std::vector<int>{1, 1, 1, 1, 1, 1, 2}));
  EXPECT_EQ(splitShards(8, 8), (std::vector<int>(8, 1)));
}

TEST(Layout, SubtreesFollowWeights) {
  using Weights = std::vector<int64_t>;
  EXPECT_EQ(splitShards(8, Weights{5, 5, 5}), (std::vector<int>{2, 2, 4})); // as without weights
  EXPECT_EQ(splitShards(8, Weights{3, 1}), (std::vector<int>{4, 4}));       // two subtrees are equal
  EXPECT_EQ(splitShards(8, Weights{2, 1, 1}), (std::vector<int>{4, 2, 2}));
  EXPECT_EQ(splitShards(8, Weights{1, 1, 2}), (std::vector<int>{2, 2, 4}));
  EXPECT_EQ(splitShards(8, Weights{4, 2, 1, 1}), (std::vector<int>{4, 2, 1, 1}));
  EXPECT_EQ(splitShards(8, Weights{9, 1, 1, 1, 1, 1}), (std::vector<int>{2, 2, 1, 1, 1, 1})); // 4 fit into a half
  EXPECT_EQ(splitShards(4, Weights{100, 1, 1, 1}), (std::vector<int>(4, 1)));
  EXPECT_EQ(splitShards(16, Weights{INT32_MAX, 1}), (std::vector<int>{8, 8}));
}

// The formula of a result: "((0+1)+2)".
std::string formula(const std::vector<TreeSum> &sums, int devices) {
  std::vector<std::string> nodes;
  for (int d = 0; d < devices; ++d)
    nodes.push_back(std::to_string(d));
  std::string result = nodes[0];
  for (const TreeSum &sum : sums)
    result = nodes[sum.left] = "(" + nodes[sum.left] + "+" + nodes[sum.right] + ")";
  return result;
}

TEST(Layout, PartialSumsAreAddedAlongTheTree) {
  auto sums = treeSums(splitShards(8, 3)); // shards 0-1, 2-3, 4-7
  EXPECT_EQ(formula(sums[1], 3), "0");
  EXPECT_EQ(formula(sums[2], 3), "(0+1)");
  EXPECT_EQ(formula(sums[3], 3), "((0+1)+2)");
  sums = treeSums(splitShards(8, 5)); // shards 0, 1, 2-3, 4-5, 6-7
  EXPECT_EQ(formula(sums[3], 5), "((0+1)+2)");
  EXPECT_EQ(formula(sums[4], 5), "(((0+1)+2)+3)");
  EXPECT_EQ(formula(sums[5], 5), "(((0+1)+2)+(3+4))");
  sums = treeSums(splitShards(8, 8));
  EXPECT_EQ(formula(sums[8], 8), "(((0+1)+(2+3))+((4+5)+(6+7)))");
  EXPECT_EQ(formula(sums[7], 8), "(((0+1)+(2+3))+((4+5)+6))");
}

TEST(Layout, ReadsDevices) {
  DeviceSpec spec;
  ASSERT_TRUE(parseDeviceSpec("cpu:12x3", spec).ok());
  EXPECT_EQ(spec.kind, "cpu");
  EXPECT_EQ(spec.devices, 12);
  EXPECT_EQ(spec.threads, 3);
  ASSERT_TRUE(parseDeviceSpec("null", spec).ok());
  EXPECT_EQ(spec.kind, "null");
  EXPECT_EQ(spec.devices, 1);
  EXPECT_EQ(spec.threads, 1);
}

TEST(Code, KnowsTheCpusFeatures) {
  EXPECT_FALSE(cpuHasFeature("no-such-feature"));
#if defined(__x86_64__)
  EXPECT_TRUE(cpuHasFeature("sse2"));
  EXPECT_EQ(cpuHasFeature("fma"), __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(cpuHasFeature("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(cpuHasFeature("bmi2"), __builtin_cpu_supports("bmi2") != 0);
  EXPECT_EQ(cpuHasFeature("avx512f"), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(cpuHasFeature("avx512vl"), __builtin_cpu_supports("avx512vl") != 0);
  EXPECT_EQ(cpuHasFeature("movbe"), __builtin_cpu_supports("movbe") != 0);
  EXPECT_EQ(cpuHasFeature("lzcnt"), __builtin_cpu_supports("lzcnt") != 0);
#endif
}

TEST(Code, TakesTheFirstTargetThatRuns) {
  std::vector<uint8_t> bytes = makePlan({}, [](mt::plan::PlanT &plan) {
    plan.targets[0]->features = {"wide", "odd"};
    plan.targets[1]->features = {"wide"};
  });
  std::unique_ptr<Plan> plan;
  ASSERT_TRUE(Plan::loadMemory(bytes.data(), bytes.size(), plan).ok());
  uint32_t index = 9;
  ASSERT_TRUE(chooseTarget(*plan, nullptr, [](std::string_view) { return true; }, index).ok());
  EXPECT_EQ(index, 0u);
  auto onlyWide = [](std::string_view feature) { return feature == "wide"; };
  ASSERT_TRUE(chooseTarget(*plan, nullptr, onlyWide, index).ok());
  EXPECT_EQ(index, 1u);
  EXPECT_EQ(chooseTarget(*plan, "first", onlyWide, index).message(),
            "the plan has no code that this CPU can run: first needs odd");
  EXPECT_EQ(chooseTarget(
                *plan, nullptr, [](std::string_view) { return false; }, index)
                .message(),
            "the plan has no code that this CPU can run: first needs wide, odd; any needs wide");
}

TEST(Code, RefusesDamagedObjects) {
  std::vector<uint8_t> elf = kernelFile();
  ASSERT_TRUE(CodeObject().load(elf, "any").ok());
  std::vector<uint8_t> other = elf;
  other[18] = 0xf3; // e_machine: RISC-V
  EXPECT_EQ(CodeObject().load(other, "any").code(), MT_DEVICE);
  EXPECT_EQ(CodeObject().load(std::vector<uint8_t>(100, 'x'), "any").code(), MT_CORRUPT);
  EXPECT_EQ(CodeObject().load(std::vector<uint8_t>(elf.begin(), elf.begin() + 200), "any").code(), MT_CORRUPT);
}

} // namespace
} // namespace mtrun::test
