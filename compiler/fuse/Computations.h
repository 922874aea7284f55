// SPDX-License-Identifier: Apache-2.0
//
// What preparation and grouping both ask of a single computation.
#pragma once

#include "dialects/mt/MtDialect.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace mtc {

// Values that every kernel computes for itself: scalar and splat constants, iota, the batch size, scalars made of
// these.
class CheapValues {
public:
  explicit CheapValues(mlir::Block &body);
  bool contains(mlir::Value value) const { return ops.contains(value.getDefiningOp()); }
  // The same for every element, as code that walks elements in no particular order needs it.
  bool isUniform(mlir::Value value) const { return uniform.contains(value.getDefiningOp()); }

private:
  llvm::DenseMap<mlir::Operation *, unsigned> ops; // and how many of them the longest chain to here has
  llvm::DenseSet<mlir::Operation *> uniform;
};

// The value of 16 bits that `value` is as f32 (docs/precision.md), or null. Every reader extends for itself.
mlir::Value extendedFrom(mlir::Value value);

// The same, or `value` itself where there is none: two values are one where they are extended from one.
mlir::Value truncated(mlir::Value value);

// A product of two matrices, or a convolution, forward or to its input.
bool isProduct(mlir::Operation *op);

// Whether two ops compute the same: equal but for extending casts of their own.
bool sameComputation(mlir::Operation *a, mlir::Operation *b);

// Bytes of a value that may lie in a thread's own memory: it stays in the second cache.
constexpr int64_t maxCachedBytes = 1 << 18;
// Of a sample's part of a value; 0 for a value without a batch axis.
int64_t bytesPerSample(mlir::Value value);

} // namespace mtc
