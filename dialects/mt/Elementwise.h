// SPDX-License-Identifier: Apache-2.0
//
// Functions that all element-wise ops share: broadcasting, costs, loops, reference evaluation.
#ifndef DIALECTS_MT_ELEMENTWISE_H
#define DIALECTS_MT_ELEMENTWISE_H

#include "dialects/mt/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"

namespace mlir::mt {

// A type whose first axis is the batch axis.
bool isSplit(Type type);
// Number of elements of a value, or of one row if the value is split.
int64_t elementsPerRow(Type type);

// Value of a constant whose elements are all equal; null for any other value.
SplatElementsAttr splatOf(Value value);

// Traits of ops (MtBase.td).
template <typename Op> struct Extends : OpTrait::TraitBase<Op, Extends> {};
template <typename Op> struct Rounds : OpTrait::TraitBase<Op, Rounds> {};
template <typename Op> struct Contraction : OpTrait::TraitBase<Op, Contraction> {};
template <typename Op> struct SameFloats : OpTrait::TraitBase<Op, SameFloats> {};
template <typename Op> struct StaysFloat32 : OpTrait::TraitBase<Op, StaysFloat32> {};
template <typename Op> struct Moves : OpTrait::TraitBase<Op, Moves> {};
template <typename Op> struct Repeats : OpTrait::TraitBase<Op, Repeats> {};
template <typename Op> struct Generates : OpTrait::TraitBase<Op, Generates> {};
template <typename Op> struct Boundary : OpTrait::TraitBase<Op, Boundary> {};
template <typename Op> struct LowerIsBetter : OpTrait::TraitBase<Op, LowerIsBetter> {};
template <typename Op> struct HigherIsBetter : OpTrait::TraitBase<Op, HigherIsBetter> {};
template <typename Op> struct Reports : OpTrait::TraitBase<Op, Reports> {};

// Whether the type is bf16 or f16.
inline bool isHalf(Type element) { return element.isBF16() || element.isF16(); }
// Rounds x to the nearest bf16 or f16, ties to even.
double roundTo(Type element, double x);
// Wraps an integer of fewer than 53 bits to i32 as two's complement does; returns x unchanged for any other type.
double wrapped(Type element, double x);

// Broadcast of two shapes as in NumPy, aligned at the last axis; a split operand must have the rank of the result.
// Emits an error at `location` if the shapes do not match.
FailureOr<SmallVector<int64_t>> broadcastShapes(std::optional<Location> location, ArrayRef<int64_t> a,
                                                ArrayRef<int64_t> b);
// Result type of a binary op. The operands must have one element type: f32 or, with `integers`, i32.
LogicalResult inferBroadcast(std::optional<Location> location, ValueRange operands, SmallVectorImpl<Type> &types,
                             bool integers = true);

// One parallel loop per axis of the result; the map of an operand's axis of size 1 is 0.
SmallVector<utils::IteratorType> elementwiseLoops(Operation *op);
SmallVector<AffineMap> elementwiseMaps(Operation *op);

Tensor interpretUnary(const EvalContext &context, Type type, const Tensor &a, double (*evaluate)(double));
// Evaluates i32 elements by `whole`, if it is not null, and all other elements by `evaluate`.
Tensor interpretBinary(const EvalContext &context, Type type, const Tensor &a, const Tensor &b,
                       double (*evaluate)(double, double), int64_t (*whole)(int64_t, int64_t) = nullptr);
double evaluateErfInv(double a);

} // namespace mlir::mt

#endif
