// SPDX-License-Identifier: Apache-2.0
//
// Limits of sizes, so that later arithmetic on sizes cannot overflow.
#ifndef FRONTEND_MLIR_LIMITS_H
#define FRONTEND_MLIR_LIMITS_H

#include "mlir/IR/BuiltinOps.h"

namespace mtc {

constexpr int64_t maxRank = 8;
constexpr int64_t maxDimension = int64_t{1} << 40;   // exclusive
constexpr int64_t maxTensorBytes = int64_t{1} << 46; // with `batch` for `?`
constexpr int64_t maxOps = 1000000;

// Checks that every tensor of the module, in values and attributes, is within the limits; emits an error otherwise.
llvm::LogicalResult checkLimits(mlir::ModuleOp module, int64_t batch);

} // namespace mtc

#endif
