// SPDX-License-Identifier: Apache-2.0
//
// Every pass, for lit: mt-opt model.mlir --mt-differentiate.
#include "compiler/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::mt::MtDialect, mlir::plan::PlanDialect, mlir::shard::ShardDialect, mlir::func::FuncDialect,
                  mlir::arith::ArithDialect, mlir::vector::VectorDialect, mlir::LLVM::LLVMDialect>();
  mlir::registerTransformsPasses();
  mtc::registerMTCompilerPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "mt-opt: the passes of the mirrored-training compiler\n", registry));
}
