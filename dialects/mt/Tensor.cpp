// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/Tensor.h"

using namespace mlir;
using namespace mlir::mt;

Tensor::Tensor(ArrayRef<int64_t> shape, double fill) : shape(shape), data(ShapedType::getNumElements(shape), fill) {}

Tensor Tensor::of(ElementsAttr value) {
  Tensor tensor(value.getShapedType().getShape());
  int64_t i = 0;
  if (isa<FloatType>(value.getElementType()))
    for (APFloat element : value.getValues<APFloat>())
      tensor.data[i++] = element.convertToDouble();
  else
    for (const APInt &element : value.getValues<APInt>())
      tensor.data[i++] =
          element.getBitWidth() == 1 ? element.getZExtValue() : static_cast<double>(element.getSExtValue());
  return tensor;
}

SmallVector<int64_t> mlir::mt::concreteShape(RankedTensorType type, int64_t rows) {
  SmallVector<int64_t> shape(type.getShape());
  if (!shape.empty() && ShapedType::isDynamic(shape[0]))
    shape[0] = rows;
  return shape;
}

void Index::next() {
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (++index[axis] < shape[axis])
      return;
    index[axis] = 0;
  }
  finished = true;
}

int64_t Index::offsetIn(ArrayRef<int64_t> other) const {
  int64_t offset = 0;
  size_t lead = shape.size() - other.size();
  for (size_t axis = 0; axis < other.size(); ++axis)
    offset = offset * other[axis] + (other[axis] == 1 ? 0 : index[lead + axis]);
  return offset;
}
