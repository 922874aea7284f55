// SPDX-License-Identifier: Apache-2.0
//
// Reverse mode over ops, and what gradients of several ops have in common.
#ifndef DIALECTS_MT_GRADIENT_H
#define DIALECTS_MT_GRADIENT_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::mt {

// Adds to `active` the floating-point values of these ops, in program order, that depend on a value of it.
void addDependents(ArrayRef<Operation *> ops, DenseSet<Value> &active);

// Reverse mode over `ops`, in program order: from `gradients` of what they compute to those of their operands that are
// `active`. Fails, with an error at the op, where one on a path has no gradient.
LogicalResult backpropagate(OpBuilder &builder, ArrayRef<Operation *> ops, const DenseSet<Value> &active,
                            DenseMap<Value, Value> &gradients);

// The gradient of a composite of one result: that of its decomposition, which is built anew (and is the same as the one
// that `mt-decompose` makes, so that one of the two goes). The builder must be at the end of a block.
void buildDecomposedGradient(OpBuilder &builder, Operation *composite, ValueRange resultGradients,
                             SmallVectorImpl<Value> &operandGradients);

// Undoes a broadcast from `type`: sums `gradient` over the axes that were repeated. Null where `gradient` is null or
// `type` no float type.
Value sumToShape(OpBuilder &builder, Location location, Value gradient, RankedTensorType type);

} // namespace mlir::mt

#endif
