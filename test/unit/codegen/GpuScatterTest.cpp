// SPDX-License-Identifier: Apache-2.0
//
// Sums at indices on simulated GPUs, to the bits of CPU code: rows that many ids name, or few, or none.
#include "test/unit/codegen/GpuFixture.h"

using namespace codegentest;

namespace {

using Ids = std::function<int32_t(int64_t position)>;

std::string scatterText(int64_t entries, int64_t width, int64_t each) {
  std::string row = "tensor<?x" + std::to_string(each), columns = std::to_string(width) + "xf32>";
  std::string ids = row + "xi32>", updates = row + "x" + columns;
  std::string table = "tensor<" + std::to_string(entries) + "x" + columns;
  return kernelText("scatter", "scatter_add",
                    "^bb0(%i: " + ids + ", %u: " + updates + "):\n%0 = mt.scatter_add %i, %u : " + ids + ", " +
                        updates + " to " + table + "\nmt.yield %0 : " + table);
}

class GpuScatter : public Gpu {
protected:
  // Each sample has `each` ids; a shard has `shardRows` samples.
  void expectScatters(const std::string &text, int64_t shards, int64_t shardRows, const std::vector<int64_t> &batches,
                      const Ids &ids, bool fast = false) {
    auto module = parse(text, shards);
    ASSERT_TRUE(module);
    for (int64_t rows : batches) {
      KernelComparison found = compareKernels(*module, shardRows, fast, rows, 1, /*beyond=*/-1, ids);
      EXPECT_EQ(found.problems, "") << "rows " << rows;
      EXPECT_EQ(found.exact, 1);
    }
  }
};

// Ids without a pattern, some outside the table.
Ids scattered(int64_t entries) {
  return [=](int64_t position) {
    uint32_t hash = static_cast<uint32_t>(position + 17) * 2654435761u;
    return static_cast<int32_t>((hash >> 8) % (entries + 4)) - 2;
  };
}

// More than a warp lists at once, so the list is emptied between; whole loads of updates, and the few behind them.
TEST_F(GpuScatter, TakesOneRowAlone) {
  for (int32_t id : {0, 19, -7, 20})
    expectScatters(scatterText(20, 40, 530), 2, 2, {1, 3, 4}, [=](int64_t) { return id; });
}

// Rows of one warp and of several, in turn and one after the other.
TEST_F(GpuScatter, TakesFewRows) {
  for (int32_t step : {1, 16})
    for (int64_t run : {1, 64, 1000}) {
      SCOPED_TRACE("step " + std::to_string(step) + ", runs of " + std::to_string(run));
      expectScatters(scatterText(30, 33, 700), 1, 3, {3},
                     [=](int64_t position) { return static_cast<int32_t>(position / run % 3) * step; });
    }
}

// Tables of one row to many, of fewer columns than a warp has threads and of several times as many.
TEST_F(GpuScatter, CutsTheTable) {
  for (int64_t width : {1, 32, 100})
    for (int64_t entries : {1, 65}) {
      SCOPED_TRACE(std::to_string(entries) + " rows of " + std::to_string(width));
      expectScatters(scatterText(entries, width, 37), 4, 2, {1, 5, 8}, scattered(entries));
    }
  expectScatters(scatterText(1200, 40, 37), 4, 2, {8}, scattered(1200));
}

// With many shards a warp has few rows, since finished sums wait in workgroup memory.
TEST_F(GpuScatter, TakesShardsByTheTree) {
  for (int64_t shards : {1, 2, 8, 256})
    expectScatters(scatterText(6, 32, 5), shards, 3, {1, 3 * shards - 2}, scattered(6));
  expectScatters(scatterText(9, 35, 5), 8, 2, {1, 15, 16}, scattered(9), /*fast=*/true);
  expectScatters(scatterText(7, 20, 0), 4, 2, {1, 8}, scattered(7));
}

TEST_F(GpuScatter, AssemblesWithoutSpills) {
  if (std::string why = whyNotAssembled(); !why.empty())
    GTEST_SKIP() << why;
  for (int64_t shards : {1, 8}) {
    auto module = parse(scatterText(50257, 768, 1024), shards);
    ASSERT_TRUE(module);
    mtc::CodegenOptions options;
    options.gpus = {"sm_75", "sm_90"};
    auto codes = mtc::generateGpuCode(*module, options);
    ASSERT_TRUE(succeeded(codes));
    for (const mtc::TargetCode &code : *codes)
      for (const mtc::KernelUsage &usage : code.usage)
        EXPECT_EQ(usage.spillBytes, 0) << code.name;
  }
}

} // namespace
