// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/LayerTable.h"

using namespace mlir;

namespace mtc::keras {

// Contracts the last axis of an input of any rank.
static Value buildDense(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  if (!x)
    return {};
  if (layer.typeOf(x).getRank() < 2)
    return layer.fail("expected an input of 2 axes or more with the batch, found 1");
  int64_t units = layer.size("units");
  Value kernel = layer.variable("kernel", {layer.shapeOf(x).back(), units}, "kernel_initializer");
  if (!kernel)
    return {};
  Value product = mt::MatmulOp::create(layer.builder, layer.location, x, kernel, false, false);
  return activate(layer, layer.addBias(product, units));
}

llvm::ArrayRef<LayerEntry> denseLayers() {
  static constexpr LayerEntry entries[] = {{"Dense", buildDense}};
  return entries;
}

} // namespace mtc::keras
