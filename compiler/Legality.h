// SPDX-License-Identifier: Apache-2.0
//
// What IR each stage may leave behind. Each check emits an error at the first op that should be gone, or should be
// there.
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
