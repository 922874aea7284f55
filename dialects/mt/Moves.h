// SPDX-License-Identifier: Apache-2.0
//
// What an op that moves elements says of them (MoveOpInterface, LookupOpInterface), of one sample: no batch axis, row
// major. Code generation for CPUs copies boxes and lines, that for GPUs finds the source of one element; both read this
// and know nothing else of such an op.
#ifndef DIALECTS_MT_MOVES_H
#define DIALECTS_MT_MOVES_H

#include "mlir/IR/Value.h"

namespace mlir::mt {

// Element i (0 to size - 1) along an axis lies at index `first` + i * `step` of the result's axis, and `stride`
// elements of the operand behind element i - 1. A stride of 0 repeats, a negative one reverses.
struct MoveAxis {
  int64_t size, stride, first = 0, step = 1;
};

// A box of an operand's elements; `start` is the operand's element that is the first one. One axis for each of the
// result's.
struct Move {
  Value operand;
  int64_t start = 0;
  SmallVector<MoveAxis> axes = {};
};

// Lines of `width` elements that ids name. With whole [outer, entries, width] and lines [outer, count, width]:
//   lines[o, i] = whole[o, id(i)], or, if `adds`, whole[o, e] = the sum of lines[o, i] over the i with id(i) = e, a
//   chain that starts at +0, in order of i
// where id(i) = min(max(ids[i], 0), entries - 1). `source` is the operand that is not ids, the result is the other one.
struct Lookup {
  Value source, ids;
  int64_t outer, entries, count, width;
  bool adds;
};

// Elements from one to the next along each axis of a shape.
SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape);
// The shape of a value without its batch axis.
ArrayRef<int64_t> sampleShape(Type type);

} // namespace mlir::mt

#endif
