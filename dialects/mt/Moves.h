// SPDX-License-Identifier: Apache-2.0
//
// Descriptions of ops that move elements (MoveOpInterface, LookupOpInterface), for one sample: without a batch axis,
// row major. The CPU code generator copies boxes and lines; the GPU code generator computes the source of one element.
// Both use only these descriptions.
#ifndef DIALECTS_MT_MOVES_H
#define DIALECTS_MT_MOVES_H

#include "mlir/IR/Value.h"

namespace mlir::mt {

// Element i (0 to size - 1) of a box along an axis is at index `first` + i * `step` of the result's axis, and i *
// `stride` elements after the box's first element in the operand. A stride of 0 repeats, a negative stride reverses.
struct MoveAxis {
  int64_t size, stride, first = 0, step = 1;
};

// A box of elements of an operand, with one axis per axis of the result. `start` is the index of the operand's element
// that becomes the box's first element.
struct Move {
  Value operand;
  int64_t start = 0;
  SmallVector<MoveAxis> axes = {};
};

// Lines of `width` elements that ids select. With whole [outer, entries, width] and lines [outer, count, width]:
//   lines[o, i] = whole[o, id(i)], or, if `adds`, whole[o, e] = sum of lines[o, i] over all i with id(i) = e: a chain
//   that starts at +0, in order of i
// where id(i) = min(max(ids[i], 0), entries - 1). `source` is the operand that is not ids. The result is the other of
// the two tensors.
struct Lookup {
  Value source, ids;
  int64_t outer, entries, count, width;
  bool adds;
};

// Strides of a row-major shape, in elements.
SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape);
// The shape of a value without its batch axis.
ArrayRef<int64_t> sampleShape(Type type);

} // namespace mlir::mt

#endif
