// SPDX-License-Identifier: Apache-2.0
//
// Properties of single ops that both the preparation and the grouping need.
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
  // Whether all elements are equal. Code that accesses elements in any order needs that.
  bool isUniform(mlir::Value value) const { return uniform.contains(value.getDefiningOp()); }

private:
  llvm::DenseMap<mlir::Operation *, unsigned> ops; // with the length of the longest chain that ends at the op
  llvm::DenseSet<mlir::Operation *> uniform;
};

// The 16-bit value of which `value` is an extension to f32 (docs/precision.md); null if it is no extension. Each reader
// has a cast of its own.
mlir::Value extendedFrom(mlir::Value value);

// The result of extendedFrom, or `value` if that is null. Two casts of the same 16-bit value compare equal by this.
mlir::Value truncated(mlir::Value value);

// Whether the op is a matrix product, a convolution or the gradient of a convolution for its input.
bool isProduct(mlir::Operation *op);

// Whether two ops compute the same value, if extending casts of their operands are ignored.
bool sameComputation(mlir::Operation *a, mlir::Operation *b);

// Largest value, in bytes, that a thread keeps in scratch memory, so that it stays in the L2 cache.
constexpr int64_t maxCachedBytes = 1 << 18;
// Bytes of one sample of a value; 0 if it has no batch axis.
int64_t bytesPerSample(mlir::Value value);

} // namespace mtc
