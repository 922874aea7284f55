// SPDX-License-Identifier: Apache-2.0
//
// Orders of elements along an axis, and elements by their places along it.
#ifndef FRONTEND_LOGICAL_SORTING_H
#define FRONTEND_LOGICAL_SORTING_H

#include "frontend/logical/Compute.h"

namespace mtc::logical {

// The places along an axis of the first `count` elements in rising order, or falling order with `descending`, as i32.
// Later keys decide between elements whose earlier keys are equal; the place decides last. NaN is the largest element.
// Refused: the batch as the axis; more than 2^15 elements, but for up to 32 floats of them.
Value sortedPlaces(Ops &ops, llvm::ArrayRef<Value> keys, int64_t count, size_t axis, bool descending);

// Whether an id is the place along a new last axis of this size.
Value isPlace(Ops &ops, const Value &ids, int64_t size);

// Elements by ids along an axis: result[i, j, k] = value[i, ids[i, j, k], k] for axis 1. The other axes of both are
// equal. Ids out of range are clamped; ids that are data are checked when the data is read.
Value takeAlong(Ops &ops, const Value &value, const Value &ids, size_t axis);

// The inputs from which moves and casts alone bring a value here; none: the value is computed.
llvm::SmallVector<mlir::mt::InputOp> dataOf(mlir::Value value);
// If ids are data, the data is checked when it is read: each id is from 0 to below this size.
void limitData(mlir::Value ids, int64_t size);

} // namespace mtc::logical

#endif
