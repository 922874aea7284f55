// SPDX-License-Identifier: Apache-2.0
//
// Attention and its gradients on simulated GPUs, against CPU code; and assembled, where next to nothing may spill.
#include "test/unit/codegen/AttentionCases.h"
#include "test/unit/codegen/GpuFixture.h"

using namespace codegentest;

namespace {

// Beside the cases that CPUs are tested with: sizes at which blocks and buffers change.
const std::vector<AttentionCase> moreCases = {
    {"wide", 70, 100, 1, 1, 128, 128, true},
    {"eighty", 70, 80, 1, 1, 80, 96},
    {"uneven", 65, 66, 2, 2, 64, 24, true},
    {"near", 130, 200, 1, 1, 16, 16, false, 3},
    {"groups_dropout", 9, 70, 4, 2, 8, 8, true, 0, {}, 0.5f, 2},
    {"negative_scale", 9, 70, 1, 1, 8, 8, true, 0, {}, 0, 1, -0.25f},
};

std::string kernelsOf(const AttentionCase &c, const char *element) {
  return forwardText(c, element) + gradientText(c, c.name + "_gradients", {"query", "key", "value"}, element) +
         gradientText(c, c.name + "_query", {"query"}, element) +
         gradientText(c, c.name + "_values", {"value"}, element) + gradientText(c, c.name + "_keys", {"key"}, element);
}

class GpuAttention : public Gpu, public testing::WithParamInterface<std::string> {
protected:
  GpuAttention() { precision = ", precision = " + GetParam(); }
  // Of four formats two are tried on all models, and the others on the usual ones.
  bool isMain() const { return GetParam() == "f32" || GetParam() == "bf16"; }
  std::vector<AttentionCase> cases() const {
    std::vector<AttentionCase> all = attentionCases;
    if (isMain() && !isSanitized)
      all.insert(all.end(), moreCases.begin(), moreCases.end());
    return all;
  }
  const char *element() const { return GetParam() == "bf16" ? "bf16" : GetParam() == "f16" ? "f16" : "f32"; }
};

TEST_P(GpuAttention, EqualsTheCpu) {
  for (const AttentionCase &c : cases()) {
    auto module = parse(kernelsOf(c, element()));
    ASSERT_TRUE(module);
    EXPECT_EQ(compareKernels(*module, /*shardRows=*/3, /*fast=*/false, /*rows=*/2, /*seed=*/1).problems, "") << c.name;
  }
}

TEST_P(GpuAttention, AssemblesWithoutSpills) {
  if (std::string why = whyNotAssembled(); !why.empty())
    GTEST_SKIP() << why;
  std::string kernels;
  for (const AttentionCase &c : cases())
    kernels += kernelsOf(c, element());
  auto module = parse(kernels);
  ASSERT_TRUE(module);
  mtc::CodegenOptions options;
  options.gpus = {"sm_90"};
  if (isMain())
    options.gpus = {"sm_75", "sm_90", "sm_120"};
  auto codes = mtc::generateGpuCode(*module, options);
  ASSERT_TRUE(succeeded(codes));
  for (const mtc::TargetCode &code : *codes)
    for (const mtc::KernelUsage &usage : code.usage)
      EXPECT_LE(usage.spillBytes, 32) << "kernel " << &usage - code.usage.data() << " for " << code.name;
}

INSTANTIATE_TEST_SUITE_P(Precisions, GpuAttention, testing::Values("f32", "tf32", "bf16", "f16"),
                         [](auto &info) { return info.param; });

} // namespace
