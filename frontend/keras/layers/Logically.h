// SPDX-License-Identifier: Apache-2.0
//
// Layers that are built of values with logical shapes, as the other formats have them.
#ifndef FRONTEND_KERAS_LAYERS_LOGICALLY_H
#define FRONTEND_KERAS_LAYERS_LOGICALLY_H

#include "frontend/keras/LayerBuilder.h"
#include "frontend/logical/Compute.h"

namespace mtc::keras {

// The tensor of what `build` makes with ops; what it refuses is an error at the layer.
template <typename Build> mlir::Value builtLogically(LayerBuilder &layer, Build build) {
  int64_t budget = logical::Ops::maxBudget;
  logical::Ops ops{layer.builder, layer.location, &budget};
  try {
    return logical::whole(ops, build(ops));
  } catch (const logical::Refused &refused) {
    return layer.fail(refused.what());
  }
}

// Images with the channels last as logical ones have them, and the way back.
inline logical::Value imagesFirst(logical::Ops &ops, mlir::Value images) {
  logical::Value value = ops.value(images);
  return logical::moveAxis(value, value.rank() - 1, 1);
}
inline logical::Value imagesLast(const logical::Value &images) {
  return logical::moveAxis(images, 1, images.rank() - 1);
}

} // namespace mtc::keras

#endif
