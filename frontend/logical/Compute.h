// SPDX-License-Identifier: Apache-2.0
//
// Ops of `mt` on values with logical shapes: element by element, over axes, of windows, of parts.
#ifndef FRONTEND_LOGICAL_COMPUTE_H
#define FRONTEND_LOGICAL_COMPUTE_H

#include "frontend/logical/Layout.h"

namespace mtc::logical {

// ---- Element by element (Elementwise.cpp). Operands broadcast as NumPy's.

// An op of one float. `attributes` are its own.
template <typename Op> Value unary(Ops &ops, const Value &value, llvm::ArrayRef<mlir::NamedAttribute> attributes = {}) {
  if (!value.isFloat())
    throw Refused("expected floats, found integers or booleans");
  return {Op::create(ops.builder, ops.location, mlir::TypeRange(value.stored.getType()), mlir::ValueRange(value.stored),
                     attributes),
          value.axes};
}
// Broadcast operands, the tensor of each in one order, and the type that a result of `element` has. The result's value
// is `like` with the tensor that is made of them.
struct Aligned {
  llvm::SmallVector<mlir::Value> stored;
  mlir::RankedTensorType type;
  Value like;
  llvm::SmallVector<int> order;

  Value result(mlir::Value tensor) const { return replaced(like, tensor, order); }
};
// `what` the operation is called where it is refused; `whole`: all of the tensors have the result's shape.
Aligned alignStored(Ops &ops, llvm::ArrayRef<Value> values, mlir::Type element, llvm::StringRef what = "an operation",
                    bool whole = false);
template <typename Op> Value binary(Ops &ops, const Value &a, const Value &b) {
  if (a.element() != b.element() || a.isBoolean())
    throw Refused("expected two operands of numbers of one type");
  Aligned operands = alignStored(ops, {a, b}, a.element());
  return operands.result(Op::create(ops.builder, ops.location, operands.type, operands.stored[0], operands.stored[1]));
}
template <typename Op> Value binary(Ops &ops, const Value &a, double b) {
  return binary<Op>(ops, a, ops.number(b, a.element()));
}
Value compare(Ops &ops, mlir::mt::Compare kind, const Value &a, const Value &b);
Value select(Ops &ops, const Value &condition, const Value &a, const Value &b);
Value logicalAnd(Ops &ops, const Value &a, const Value &b);
Value logicalOr(Ops &ops, const Value &a, const Value &b);
Value logicalNot(Ops &ops, const Value &a);
Value logicalXor(Ops &ops, const Value &a, const Value &b);
// Elements of another type; of i1 whether they are not 0.
Value cast(Ops &ops, const Value &value, mlir::Type element);
// Floats as those of 16 bits have them: f16 or bf16.
Value rounded(Ops &ops, const Value &value, mlir::Type half);
// Whole numbers of i32 as integers of fewer bits have them, which wrap around; Known::width says which.
Value wrapped(Ops &ops, const Value &value, int width);
// The same numbers, but the next of those limits where they are beyond: what a cast of floats to few bits gives.
Value saturated(Ops &ops, const Value &value, double least, double most);
// Products and a quotient, which hold for negative numbers too.
Value integerPower(Ops &ops, const Value &value, int64_t exponent);

// ---- Over axes (Reductions.cpp)

// Over logical axes, which disappear. Over the batch there is a sum only.
Value reduce(Ops &ops, mlir::mt::Reduction kind, const Value &value, llvm::ArrayRef<int64_t> axes);
// The same, but not over the batch, which becomes the first axis.
Value reduceWithinSamples(Ops &ops, mlir::mt::Reduction kind, const Value &value, llvm::ArrayRef<int64_t> axes);
Value mean(Ops &ops, const Value &value, llvm::ArrayRef<int64_t> axes);
// The same, and the axes stay with the size 1.
Value keepDims(const Value &reduced, llvm::ArrayRef<int64_t> axes);
Value softmax(Ops &ops, const Value &value, size_t axis, bool logarithm);
Value argmax(Ops &ops, const Value &value, size_t axis);
Value cumsum(Ops &ops, const Value &value, size_t axis, bool reverse);
// (x - mean) / sqrt(variance + epsilon) over axes of a sample.
Value normalize(Ops &ops, const Value &value, llvm::ArrayRef<int64_t> axes, double epsilon);
// -log softmax(logits)[label] of each label: [..., C] and [...] of i32.
Value crossEntropy(Ops &ops, const Value &logits, const Value &labels);

// ---- Products (Products.cpp)

// Sums of products over pairs of `contracted` axes; `common` pairs of axes are in both. Axes of the result: the common
// ones, the free ones of a, the free ones of b.
using AxisPairs = llvm::SmallVector<std::pair<int64_t, int64_t>>;
Value product(Ops &ops, const Value &a, const Value &b, const AxisPairs &contracted, const AxisPairs &common = {});
// Multiplies along the last two axes, as NumPy's matmul does.
Value matmul(Ops &ops, const Value &a, const Value &b);

// ---- Windows (Windows.cpp). Images are [b, C, spatial...], one or two spatial axes; kernels [F, C / groups,
// spatial...], whose tensor is best stored as [spatial..., C / groups, F].

struct Windows {
  llvm::SmallVector<int64_t> taps, strides, dilation, low, high; // for each spatial axis
  int64_t groups = 1;
  llvm::SmallVector<int64_t> spread = {}; // of the images: n - 1 zeros between two elements; empty: none
  // How many windows there are on an axis of this size.
  int64_t count(size_t axis, int64_t size) const;
  bool spreads() const {
    return llvm::any_of(spread, [](int64_t n) { return n != 1; });
  }
};
Value convolution(Ops &ops, const Value &images, const Value &kernel, const Windows &windows);
// The gradient of a convolution to its images, whose spatial sizes are given. Kernels are [C, F / groups, spatial...].
Value transposedConvolution(Ops &ops, const Value &images, const Value &kernel, const Windows &windows,
                            llvm::ArrayRef<int64_t> sizes);
// Any convolution that a framework writes, the gradients of others among them (WindowGradients.cpp). With the batch as
// the second axis of both operands, [C, b, spatial...] and [F, b, spatial...], it is the gradient of a convolution to
// its kernel, [C / groups, F, spatial...], whose groups `sampleGroups` are. With zeros between the images, or a kernel
// that is reversed, it is the gradient to the images.
Value generalConvolution(Ops &ops, const Value &images, const Value &kernel, const Windows &windows,
                         int64_t sampleGroups = 1);
Value pool(Ops &ops, mlir::mt::Reduction kind, const Value &images, const Windows &windows);
// The gradient of a maximum of windows to its images: what belongs to a window goes to the first of its largest.
Value maximumGradient(Ops &ops, const Value &gradient, const Value &images, const Windows &windows);
// Over all axes but 1; `parameters`: scale, centre, mean, variance.
Value batchNormalization(Ops &ops, const Value &images, llvm::ArrayRef<Value> parameters, double momentum,
                         double epsilon);
// [C] as [C, 1, ...], which broadcasts to images of this rank.
Value perChannel(const Value &value, size_t rank);

// ---- Parts (Moves.cpp)

// Elements from `starts`, so many of them, with strides of 1 or more; the batch axis is whole.
Value slice(Ops &ops, const Value &value, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<Size> sizes,
            llvm::ArrayRef<int64_t> strides);
Value sliceAxis(Ops &ops, const Value &value, size_t axis, int64_t start, int64_t size, int64_t stride = 1);
// Elements of `fill` before and after; negative numbers cut off.
Value pad(Ops &ops, const Value &value, double fill, llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high,
          llvm::ArrayRef<int64_t> interior = {});
// Elements of the value itself before and after, along one axis; negative numbers cut off.
enum class PadMode { Reflect, Edge, Wrap };
Value padFrom(Ops &ops, const Value &value, size_t axis, int64_t low, int64_t high, PadMode mode);
Value concat(Ops &ops, llvm::ArrayRef<Value> values, size_t axis);
Value reverse(Ops &ops, const Value &value, llvm::ArrayRef<int64_t> axes);
// 1 at the place of the id along a new last axis, else 0.
Value oneHot(Ops &ops, const Value &ids, int64_t depth);
// Ids of an axis of this size, where negative ones count from the end.
Value fromEnd(Ops &ops, const Value &ids, int64_t size);
// Slices by index along an axis, whose place the axes of `ids` take; ids out of range are clamped. The value is a table
// without the batch, or the ids are the same for all samples, or each sample has its own.
Value take(Ops &ops, const Value &value, const Value &ids, size_t axis);
// Sums of updates by id, over the batch: [rows, D...] of ids [I...] and updates [I..., D...], with the batch in I. Ids
// out of range are clamped.
Value scatterRows(Ops &ops, int64_t rows, const Value &ids, const Value &updates);
// Places in the batch: [b] of i32.
Value samplePlaces(Ops &ops);

} // namespace mtc::logical

#endif
