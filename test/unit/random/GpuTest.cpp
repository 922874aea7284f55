// SPDX-License-Identifier: Apache-2.0
//
// Random models' kernels mean the same as GPU code. A fixed sample by default;
//   MTC_RANDOM_GRAPHS=300 MTC_RANDOM_SEED=1 build/release/test/unit/randomGpuTests
#include "compiler/Pipeline.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Tails.h"
#include "test/unit/codegen/Simulated.h"
#include "test/unit/random/RandomModel.h"
#include "gtest/gtest.h"

using namespace mlir;

namespace {

// The stages up to the plan dialect.
LogicalResult toPlan(ModuleOp module, mtc::Compilation &compilation) {
  for (const mtc::Stage &stage : mtc::stages()) {
    if (failed(mtc::runStage(stage, module, compilation)))
      return failure();
    if (StringRef(stage.name) == "allocate")
      return success();
  }
  return failure();
}

TEST(RandomGpuKernels, ComputeWhatCpuKernelsDo) {
  DialectRegistry dialects;
  mtc::registerDialects(dialects);
  MLIRContext context(dialects, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  uint32_t first = mtc::test::fromEnvironment("MTC_RANDOM_SEED", 1),
           graphs = mtc::test::fromEnvironment("MTC_RANDOM_GRAPHS", 6);
  int64_t kernels = 0, exact = 0;
  for (uint32_t seed = first; seed < first + graphs; ++seed) {
    mtc::test::RandomModel model = mtc::test::makeRandomModel(context, seed);
    mtc::Compilation compilation;
    compilation.gpus = {"simulated"};
    const mtc::Step &step = model.step;
    int64_t shardRows = (step.batch + step.shards - 1) / step.shards;
    mt::Compilation parameters(*model.module);
    parameters.setBatch(step.batch);
    parameters.setShards(step.shards, shardRows);
    parameters.setSeed(step.seed);
    ASSERT_TRUE(succeeded(toPlan(*model.module, compilation))) << "seed " << seed;
    // Each kernel is launched by itself here; test/devices compares kernels with the tails that they compute.
    model.module->walk([](Operation *op) { op->removeDiscardableAttr(mt::tailAttribute); });
    codegentest::KernelComparison found =
        codegentest::compareKernels(*model.module, shardRows, /*fast=*/false, step.samples, seed);
    EXPECT_EQ(found.problems, "") << "seed " << seed;
    kernels += found.kernels;
    exact += found.exact;
  }
  std::printf("%lld kernels, %lld of them to the bit\n", static_cast<long long>(kernels),
              static_cast<long long>(exact));
  EXPECT_GT(exact, 0);
}

} // namespace
