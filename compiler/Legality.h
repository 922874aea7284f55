// SPDX-License-Identifier: Apache-2.0
//
// The ops that are legal after each stage. Each check emits an error at the first op that is not legal, or at the
// module if an op is missing.
#ifndef COMPILER_LEGALITY_H
#define COMPILER_LEGALITY_H

#include "mlir/IR/BuiltinOps.h"

namespace mtc {

llvm::LogicalResult checkImport(mlir::ModuleOp module);
llvm::LogicalResult checkDifferentiate(mlir::ModuleOp module);
llvm::LogicalResult checkShard(mlir::ModuleOp module);
llvm::LogicalResult checkFuse(mlir::ModuleOp module);
llvm::LogicalResult checkSchedule(mlir::ModuleOp module);
llvm::LogicalResult checkAllocate(mlir::ModuleOp module);
llvm::LogicalResult checkCodegen(mlir::ModuleOp module);

} // namespace mtc

#endif
