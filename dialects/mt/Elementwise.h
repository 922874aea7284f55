// SPDX-License-Identifier: Apache-2.0
//
// What element-wise ops share: broadcasting, costs, loops, interpretation.
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
// Elements of a value, of one row where it is split.
int64_t elementsPerRow(Type type);

// The value of a constant all of whose elements are equal; null for every other value.
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

// bf16 and f16.
inline bool isHalf(Type element) { return element.isBF16() || element.isF16(); }
// The nearest bf16 or f16, ties to even.
double roundTo(Type element, double x);
// Of i32 the remainder of a whole number of fewer than 53 bits, as two's complement has it; any other as it is.
double wrapped(Type element, double x);

// NumPy's broadcast of two shapes, aligned at the last axis; a split operand must have the result's rank. Reports at
// `location`.
FailureOr<SmallVector<int64_t>> broadcastShapes(std::optional<Location> location, ArrayRef<int64_t> a,
                                                ArrayRef<int64_t> b);
// The result of a binary op: equal element types, f32 or, with `integers`, i32.
LogicalResult inferBroadcast(std::optional<Location> location, ValueRange operands, SmallVectorImpl<Type> &types,
                             bool integers = true);

// One parallel loop a result axis; an operand's axis of size 1 is at 0.
SmallVector<utils::IteratorType> elementwiseLoops(Operation *op);
SmallVector<AffineMap> elementwiseMaps(Operation *op);

Tensor interpretUnary(const EvalContext &context, Type type, const Tensor &a, double (*evaluate)(double));
// With `whole`, what i32 elements are; where it is null they are as of doubles.
Tensor interpretBinary(const EvalContext &context, Type type, const Tensor &a, const Tensor &b,
                       double (*evaluate)(double, double), int64_t (*whole)(int64_t, int64_t) = nullptr);
double evaluateErfInv(double a);

} // namespace mlir::mt

#endif
