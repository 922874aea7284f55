// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/layers/AttendedAxes.h"
#include "frontend/keras/LayerTable.h"

using namespace mlir;

namespace mtc::keras {

SmallVector<int64_t> AttendedAxes::order(int64_t rank, int64_t more) const {
  SmallVector<int64_t> order = {0};
  for (int64_t axis = 1; axis < rank - 1; ++axis)
    if (!llvm::is_contained(axes, axis))
      order.push_back(axis);
  llvm::append_range(order, axes);
  for (int64_t axis = 0; axis < more; ++axis)
    order.push_back(rank - 1 + axis);
  return order;
}

std::optional<AttendedAxes> readAttendedAxes(LayerBuilder &layer, Value query, Value value) {
  AttendedAxes attended;
  int64_t rank = layer.typeOf(query).getRank();
  if (rank < 3 || rank > 6 || layer.typeOf(value).getRank() != rank) {
    layer.fail("expected tensors of 3 to 6 axes with the batch, and as many of each, found " + std::to_string(rank) +
               " and " + std::to_string(layer.typeOf(value).getRank()));
    return std::nullopt;
  }
  if (const Json *axisList = layer.config.find("attention_axes")) {
    std::optional<SmallVector<int64_t>> axes =
        sampleAxes(layer, query, layer.config.integers("attention_axes", axisList->is_array() ? -1 : 1));
    if (!axes)
      return std::nullopt;
    attended.axes = *axes;
  } else {
    for (int64_t axis = 1; axis < rank - 1; ++axis)
      attended.axes.push_back(axis);
  }
  if (attended.axes.empty() || attended.axes.back() == rank - 1) {
    layer.fail("expected attention_axes between the batch and the last axis, found another");
    return std::nullopt;
  }
  for (int64_t axis = 1; axis < rank - 1; ++axis) {
    int64_t size = layer.shapeOf(query)[axis];
    if (llvm::is_contained(attended.axes, axis)) {
      attended.attendedShape.push_back(size);
      continue;
    }
    attended.freeShape.push_back(size);
    attended.free *= size;
    if (layer.shapeOf(value)[axis] != size) {
      layer.fail("expected equal sizes of the axes that are not in attention_axes, found " + std::to_string(size) +
                 " and " + std::to_string(layer.shapeOf(value)[axis]));
      return std::nullopt;
    }
  }
  return attended;
}

static Value permuted(LayerBuilder &layer, Value x, ArrayRef<int64_t> order) {
  return llvm::is_sorted(order) ? x : mt::TransposeOp::create(layer.builder, layer.location, x, order).getResult();
}

Value AttendedAxes::arrange(LayerBuilder &layer, Value x) const {
  int64_t rank = layer.typeOf(x).getRank(), steps = 1;
  for (int64_t axis : axes)
    steps *= layer.shapeOf(x)[axis];
  SmallVector<int64_t> shape = {ShapedType::kDynamic, free, steps, layer.shapeOf(x).back()};
  if (free == 1)
    shape.erase(shape.begin() + 1);
  return layer.reshape(permuted(layer, layer.toFloat(x), order(rank, 1)), shape);
}

Value AttendedAxes::restore(LayerBuilder &layer, Value x, ArrayRef<int64_t> output) const {
  SmallVector<int64_t> shape = {ShapedType::kDynamic};
  llvm::append_range(shape, freeShape);
  llvm::append_range(shape, attendedShape);
  int64_t rank = static_cast<int64_t>(shape.size()) + 1;
  llvm::append_range(shape, output);
  SmallVector<int64_t> arranged = order(rank, static_cast<int64_t>(output.size())), back;
  for (size_t axis = 0; axis < arranged.size(); ++axis)
    back.push_back(llvm::find(arranged, static_cast<int64_t>(axis)) - arranged.begin());
  return permuted(layer, layer.reshape(x, shape), back);
}

} // namespace mtc::keras
