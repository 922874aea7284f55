// SPDX-License-Identifier: Apache-2.0
//
// Values of the reference evaluation: every element is a double, whatever the element type (i1: 0 or 1).
#ifndef DIALECTS_MT_TENSOR_H
#define DIALECTS_MT_TENSOR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include <vector>

namespace mlir::mt {

// Row major and dense.
struct Tensor {
  SmallVector<int64_t> shape;
  std::vector<double> data;

  Tensor() = default;
  Tensor(ArrayRef<int64_t> shape, double fill = 0.0);
  static Tensor scalar(double value) { return Tensor({}, value); }
  // Elements of a constant; a splat is expanded.
  static Tensor of(ElementsAttr value);

  int64_t rank() const { return shape.size(); }
  int64_t size() const { return data.size(); }
};

// Context of an evaluation, in addition to the operands.
struct EvalContext {
  int64_t rows = 0;     // number of valid rows, the size of every `?`
  int64_t firstRow = 0; // index of the first row in the global batch
  int64_t samples = 0;  // number n of valid samples in the global batch
  uint64_t seed = 0;
};

// Shape of a value of this type, with `rows` for `?`.
SmallVector<int64_t> concreteShape(RankedTensorType type, int64_t rows);

// An iterator over all indices of a shape in row-major order.
class Index {
public:
  explicit Index(ArrayRef<int64_t> shape)
      : shape(shape), index(shape.size(), 0), finished(llvm::is_contained(shape, 0)) {}
  bool done() const { return finished; }
  void next();
  int64_t operator[](size_t axis) const { return index[axis]; }
  // Linear offset of the index in a tensor of shape `other`, broadcast as in NumPy (aligned at the last axis).
  int64_t offsetIn(ArrayRef<int64_t> other) const;

private:
  ArrayRef<int64_t> shape;
  SmallVector<int64_t> index;
  bool finished;
};

} // namespace mlir::mt

#endif
