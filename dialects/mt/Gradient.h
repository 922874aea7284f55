// SPDX-License-Identifier: Apache-2.0
//
// Reverse-mode differentiation over a list of ops, and helpers for the gradients of several ops.
#ifndef DIALECTS_MT_GRADIENT_H
#define DIALECTS_MT_GRADIENT_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::mt {

// Adds to `active` the floating-point results of `ops`, in program order, that depend on a value in `active`.
void addDependents(ArrayRef<Operation *> ops, DenseSet<Value> &active);

// Differentiates `ops`, which are in program order: extends `gradients` from their results to their `active` operands.
// Fails, with an error at the op, if an op between active values has no gradient.
LogicalResult backpropagate(OpBuilder &builder, ArrayRef<Operation *> ops, const DenseSet<Value> &active,
                            DenseMap<Value, Value> &gradients);

// Builds the gradient of a composite with one result by differentiating its decomposition. The decomposition is built
// again, equal to the ops that `mt-decompose` builds, so CSE removes one of the two. The builder must be at the end of
// a block.
void buildDecomposedGradient(OpBuilder &builder, Operation *composite, ValueRange resultGradients,
                             SmallVectorImpl<Value> &operandGradients);

// Gradient of a broadcast from `type`: sums `gradient` over the axes that were repeated. Returns null if `gradient` is
// null or the elements of `type` are not floats.
Value sumToShape(OpBuilder &builder, Location location, Value gradient, RankedTensorType type);

} // namespace mlir::mt

#endif
