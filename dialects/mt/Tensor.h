// SPDX-License-Identifier: Apache-2.0
//
// Values of the interpreter: every element a double, whatever the element type (i1: 0 or 1).
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
  // The constant's elements; a splat is spread.
  static Tensor of(ElementsAttr value);

  int64_t rank() const { return shape.size(); }
  int64_t size() const { return data.size(); }
};

// What an op's value depends on besides its operands.
struct EvalContext {
  int64_t rows = 0;     // valid rows of every `?`
  int64_t firstRow = 0; // global index of the first of them
  int64_t samples = 0;  // n, valid samples of the global batch
  uint64_t seed = 0;
};

// The shape of a value of this type in this context: `?` is `rows`.
SmallVector<int64_t> concreteShape(RankedTensorType type, int64_t rows);

// Walks all indices of a shape in row-major order.
class Index {
public:
  explicit Index(ArrayRef<int64_t> shape)
      : shape(shape), index(shape.size(), 0), finished(llvm::is_contained(shape, 0)) {}
  bool done() const { return finished; }
  void next();
  int64_t operator[](size_t axis) const { return index[axis]; }
  // Linear offset into a tensor of `other` shape, broadcast like NumPy (aligned at the last axis).
  int64_t offsetIn(ArrayRef<int64_t> other) const;

private:
  ArrayRef<int64_t> shape;
  SmallVector<int64_t> index;
  bool finished;
};

} // namespace mlir::mt

#endif
