// SPDX-License-Identifier: Apache-2.0
//
// Logical shapes: broadcast, reshape, transpose. And `arrange`, which stores a value in an order.
#ifndef FRONTEND_LOGICAL_LAYOUT_H
#define FRONTEND_LOGICAL_LAYOUT_H

#include "frontend/logical/Values.h"

namespace mtc::logical {

// Logical axis i of the result is axis permutation[i].
Value transpose(const Value &value, llvm::ArrayRef<int64_t> permutation);
// Moves one axis to another index; the other axes keep their order.
Value moveAxis(const Value &value, size_t from, size_t to);
// Axes of size 1 at these places of the result, in rising order.
Value expandDims(const Value &value, llvm::ArrayRef<int64_t> axes);
// Without these axes, of size 1.
Value squeeze(const Value &value, llvm::ArrayRef<int64_t> axes);
// Axes are those at the end of the shape; sizes of 1 are repeated.
Value broadcast(const Value &value, llvm::ArrayRef<Size> shape);
// The shape that all broadcast to.
Shape commonShape(llvm::ArrayRef<Value> values);
// Values of one logical shape, each axis in the same parts in all of them.
llvm::SmallVector<Value> align(llvm::ArrayRef<Value> values);
// With the batch by itself in each axis: the first part where that is open.
Value decide(const Value &value);
// Parts that some of the aligned values store, in the order in which a result should store them.
llvm::SmallVector<int> orderOf(llvm::ArrayRef<Value> values);
// The tensor whose axes are these parts of the value, in this order. Parts that are not stored have the size 1, but
// those of `expand`, which are repeated. All stored parts are in `order`, the batch first.
mlir::Value arrange(Ops &ops, const Value &value, llvm::ArrayRef<int> order, llvm::ArrayRef<int> expand = {});
// The value with another stored tensor, whose axes are the parts `order`.
Value replaced(const Value &value, mlir::Value stored, llvm::ArrayRef<int> order);
// All parts but those of size 1, the batch first.
llvm::SmallVector<int> batchFirst(llvm::ArrayRef<Axis> flat);
// The value with these parts stored, whatever their size.
Value withStored(Ops &ops, const Value &value, llvm::ArrayRef<int> parts);
// Stored with the batch first and the rest in logical order, and all parts but those of 1.
Value canonical(Ops &ops, const Value &value);
// Stored with this logical axis last, and all of it.
Value storedLast(Ops &ops, const Value &value, size_t axis);
// All parts in logical order, those of size 1 too: the tensor of the logical shape. The batch must come first.
mlir::Value whole(Ops &ops, const Value &value);
// The same elements, row major, in another logical shape. The batch stays by itself.
Value reshape(Ops &ops, const Value &value, llvm::ArrayRef<Size> shape);

// 0 .. count - 1
llvm::SmallVector<int> everyPart(size_t count);
// The number of a part's logical axis' first part.
size_t firstPart(const Value &value, size_t axis);
// A size of a stored tensor.
int64_t storedSize(const Size &size);
// The tensor repeated along axes of size 1.
mlir::Value broadcastStored(Ops &ops, mlir::Value stored, llvm::ArrayRef<int64_t> shape);

} // namespace mtc::logical

#endif
