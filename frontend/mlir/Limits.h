// SPDX-License-Identifier: Apache-2.0
//
// Bounds on sizes, so that later arithmetic on them cannot overflow.
#ifndef FRONTEND_MLIR_LIMITS_H
#define FRONTEND_MLIR_LIMITS_H

#include "mlir/IR/BuiltinOps.h"

namespace mtc {

constexpr int64_t maxRank = 8;
constexpr int64_t maxDimension = int64_t{1} << 40;   // exclusive
constexpr int64_t maxTensorBytes = int64_t{1} << 46; // with `?` = batch
constexpr int64_t maxOps = 1000000;

// Every tensor of the module, values and attributes, is within the limits. Emits an error where one is not.
llvm::LogicalResult checkLimits(mlir::ModuleOp module, int64_t batch);

} // namespace mtc

#endif
