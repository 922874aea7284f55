// SPDX-License-Identifier: Apache-2.0
//
// Properties of single computations that preparation and grouping both need.
#pragma once

#include "dialects/mt/MtDialect.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace mtc {

// Values that every kernel recomputes instead of reading them from memory: scalar and splat constants, iota, the batch
// size, and scalars made of these.
class RecomputedValues {
public:
  explicit RecomputedValues(mlir::Block &body);
  bool contains(mlir::Value value) const { return ops.contains(value.getDefiningOp()); }
  // Whether all elements are equal. Code that visits elements in any order needs that.
  bool isUniform(mlir::Value value) const { return uniform.contains(value.getDefiningOp()); }

private:
  llvm::DenseMap<mlir::Operation *, unsigned> ops; // and how many of them the longest chain to here has
  llvm::DenseSet<mlir::Operation *> uniform;
};

// The 16-bit value of which `value` is the extension to f32 (docs/precision.md), or null. Each reader has its own cast.
mlir::Value extendedFrom(mlir::Value value);

// extendedFrom, or `value` itself where that is null. Two casts of the same 16-bit value compare equal by this.
mlir::Value truncated(mlir::Value value);

// Whether this is a matrix product or a convolution (forward, or the gradient of its input).
bool isProduct(mlir::Operation *op);

// Whether two ops compute the same value. Extending casts of their operands do not count.
bool sameComputation(mlir::Operation *a, mlir::Operation *b);

// Largest value, in bytes, that a thread keeps in scratch memory: it stays in the L2 cache.
constexpr int64_t maxCachedBytes = 1 << 18;
// Bytes of one sample of a value; 0 for a value without a batch axis.
int64_t bytesPerSample(mlir::Value value);

} // namespace mtc
