// SPDX-License-Identifier: Apache-2.0
//
// Kernels as GPU code, against CPU code.
#ifndef TEST_UNIT_CODEGEN_GPUFIXTURE_H
#define TEST_UNIT_CODEGEN_GPUFIXTURE_H

#include "compiler/codegen/gpu/Gpu.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Parser/Parser.h"
#include "test/unit/codegen/Harness.h"
#include "test/unit/codegen/Simulated.h"
#include <gtest/gtest.h>

namespace codegentest {

// LLVM and the assembler of GPU code are not instrumented, and take minutes: with sanitizers a part is tried.
#if __has_feature(address_sanitizer)
inline constexpr bool isSanitized = true;
#else
inline constexpr bool isSanitized = false;
#endif
// Why the code for GPUs cannot be assembled; empty: it can.
inline const char *whyNotAssembled() {
  return isSanitized ? "needs a build without sanitizers" : mtc::findPtxas().empty() ? "needs ptxas" : "";
}

class Gpu : public testing::Test {
protected:
  Gpu() : context(registry()) { context.loadAllAvailableDialects(); }
  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry dialects;
    dialects.insert<mlir::mt::MtDialect, mlir::plan::PlanDialect, mlir::shard::ShardDialect>();
    return dialects;
  }
  // Tiles are chosen by the batch.
  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &kernels, int64_t shards = 8, int64_t batch = 256) {
    std::string text = "module attributes {mt.compilation = #mt.compilation<batch = " + std::to_string(batch) +
                       ", shards = " + std::to_string(shards) + precision + ">} {\n" + kernels + "}";
    return mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  }
  void expectEqual(const std::string &kernels, int64_t shardRows = 3, bool fast = false, int64_t shards = 8,
                   int64_t batch = 256) {
    auto module = parse(kernels, shards, batch);
    ASSERT_TRUE(module);
    for (int64_t rows : {1, 21})
      if (rows <= shardRows * shards || fast)
        EXPECT_EQ(compareKernels(*module, shardRows, fast, rows, static_cast<unsigned>(rows), /*beyond=*/-1,
                                 /*integers=*/nullptr, simulated)
                      .problems,
                  "")
            << "rows " << rows;
  }
  mlir::MLIRContext context;
  std::string precision; // an attribute, or nothing
  std::string simulated = mtc::simulatedName.str();
};

} // namespace codegentest

#endif
