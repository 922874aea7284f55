// SPDX-License-Identifier: Apache-2.0
#include "frontend/logical/Constants.h"

using namespace mlir;

namespace mtc::logical {

template <typename Element>
static DenseElementsAttr gathered(DenseElementsAttr elements, RankedTensorType type, const IndexMap &map) {
  auto range = elements.getValues<Element>();
  SmallVector<Element> made;
  made.reserve(type.getNumElements());
  SmallVector<int64_t> indices(type.getRank(), 0);
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    int64_t place = map.start;
    for (auto [index, stride] : llvm::zip_equal(indices, map.strides))
      place += index * stride;
    made.push_back(range[place]);
    for (int64_t axis = type.getRank(); axis-- > 0;) {
      if (++indices[axis] < type.getDimSize(axis))
        break;
      indices[axis] = 0;
    }
  }
  return DenseElementsAttr::get(type, ArrayRef<Element>(made));
}

mlir::Value foldConstant(Ops &ops, mlir::Value stored, ArrayRef<int64_t> shape, const IndexMap &map) {
  DenseElementsAttr elements = elementsOf(stored);
  if (!elements || ShapedType::isDynamicShape(shape))
    return {};
  auto type = cast<RankedTensorType>(stored.getType()).clone(shape);
  // A small constant that is repeated many times stays small in the plan.
  constexpr int64_t most = int64_t{1} << 16;
  int64_t count = 1;
  for (int64_t size : shape)
    count = multiply(count, size);
  if (count > std::max(most, elements.getNumElements()) || !ops.affords(elements.isSplat() ? 1 : count))
    return {};
  DenseElementsAttr made;
  if (elements.isSplat())
    made = elements.resizeSplat(type);
  else if (type.getElementType().isF32())
    made = gathered<float>(elements, type, map);
  else if (type.getElementType().isF64())
    made = gathered<double>(elements, type, map);
  else if (type.getElementType().isInteger(32))
    made = gathered<int32_t>(elements, type, map);
  else if (type.getElementType().isInteger(1))
    made = gathered<bool>(elements, type, map);
  return made ? mlir::Value(mt::ConstantOp::create(ops.builder, ops.location, made)) : mlir::Value();
}

SmallVector<int64_t> rowMajor(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;)
    strides[axis - 1] = multiply(strides[axis], shape[axis]);
  return strides;
}

} // namespace mtc::logical
