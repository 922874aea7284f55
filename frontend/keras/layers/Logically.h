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
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(value.rank())));
  std::rotate(order.begin() + 1, order.end() - 1, order.end());
  return logical::transpose(value, order);
}
inline logical::Value imagesLast(const logical::Value &images) {
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(images.rank())));
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return logical::transpose(images, order);
}

} // namespace mtc::keras

#endif
