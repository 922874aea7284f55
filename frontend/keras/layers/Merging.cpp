// SPDX-License-Identifier: Apache-2.0
//
// Layers that merge several tensors whose shapes broadcast.
#include "frontend/keras/LayerTable.h"

using namespace mlir;

namespace mtc::keras {

template <typename Op> static Value fold(LayerBuilder &layer, size_t least = 2) {
  SmallVector<Value> tensors = layer.inputs(least);
  if (tensors.empty())
    return {};
  Value result = layer.toFloat(tensors[0]);
  for (Value tensor : llvm::drop_begin(tensors))
    result = layer.binary<Op>(result, layer.toFloat(tensor));
  return result;
}

static Value buildAdd(LayerBuilder &layer) { return fold<mt::AddOp>(layer); }
static Value buildMultiply(LayerBuilder &layer) { return fold<mt::MulOp>(layer); }
static Value buildMaximum(LayerBuilder &layer) { return fold<mt::MaximumOp>(layer); }
static Value buildMinimum(LayerBuilder &layer) { return fold<mt::MinimumOp>(layer); }

static Value buildSubtract(LayerBuilder &layer) {
  if (size_t count = layer.inputs().size(); count > 2)
    return layer.fail("expected 2 tensors, found " + std::to_string(count));
  return fold<mt::SubOp>(layer);
}

static Value buildAverage(LayerBuilder &layer) {
  Value sum = fold<mt::AddOp>(layer);
  return sum ? (layer.expr(sum) / double(layer.inputs().size())).value() : sum;
}

llvm::ArrayRef<LayerEntry> mergingLayers() {
  static constexpr LayerEntry entries[] = {{"Add", buildAdd},           {"Subtract", buildSubtract},
                                           {"Multiply", buildMultiply}, {"Average", buildAverage},
                                           {"Maximum", buildMaximum},   {"Minimum", buildMinimum}};
  return entries;
}

} // namespace mtc::keras
