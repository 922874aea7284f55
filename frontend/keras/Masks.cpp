// SPDX-License-Identifier: Apache-2.0
//
// Masks of sequences: which mask the result of a layer has, as in Keras.
#include "frontend/keras/LayerTable.h"

using namespace mlir;

namespace mtc::keras {

static bool isOneOf(llvm::StringRef className, ArrayRef<llvm::StringRef> names) {
  return llvm::is_contained(names, className);
}

// Layers whose result has the mask of their input.
static constexpr llvm::StringRef passing[] = {"Activation",
                                              "ActivityRegularization",
                                              "Dense",
                                              "Dropout",
                                              "ELU",
                                              "GaussianDropout",
                                              "GaussianNoise",
                                              "Identity",
                                              "LeakyReLU",
                                              "GroupNormalization",
                                              "LayerNormalization",
                                              "Normalization",
                                              "PReLU",
                                              "ReLU",
                                              "Rescaling",
                                              "SpatialDropout1D",
                                              "SpatialDropout2D",
                                              "UnitNormalization",
                                              "MultiHeadAttention",
                                              "GroupQueryAttention"};
// Layers whose result depends on the mask.
static constexpr llvm::StringRef depending[] = {"BatchNormalization", "Softmax", "Concatenate", "TimeDistributed"};
static constexpr llvm::StringRef merging[] = {"Add", "Average", "Maximum", "Minimum", "Multiply", "Subtract"};

// A step exists if it exists in one of the tensors; no mask if one of them has none.
static Value either(LayerBuilder &layer, ArrayRef<Value> masks) {
  Value result = masks[0];
  for (Value mask : masks) {
    if (!mask || !result)
      return {};
    if (mask != result)
      result = (!mt::Expr(layer.expr(mt::AndOp::create(layer.builder, layer.location, (!layer.expr(result)).value(),
                                                       (!layer.expr(mask)).value()))))
                   .value();
  }
  return result;
}

void passMask(LayerBuilder &layer) {
  SmallVector<Value> masks = layer.masks();
  if (layer.readsMask() || llvm::none_of(masks, [](Value mask) { return bool(mask); }))
    return;
  llvm::StringRef className = layer.layer.className;
  bool isLayer = llvm::StringRef(layer.layer.module).contains("layers") || layer.layer.module.empty();
  if (!isLayer && isOneOf(className, merging)) // an operator such as x + y
    emitWarning(layer.location)
        << "an operator drops the mask of its operands, as in Keras, so the layers after it use "
           "all steps; keras.layers."
        << className << " keeps the mask";
  else if (isOneOf(className, passing))
    layer.outputMask = masks[0];
  else if (isOneOf(className, merging))
    layer.outputMask = either(layer, masks);
  else if (isOneOf(className, depending))
    layer.fail("expected an input without a mask, found one, of a Masking layer or of an Embedding with mask_zero, "
               "which is not supported here");
  else if (isLayer)
    emitWarning(layer.location) << "a layer of class " << className
                                << " drops the mask of its input, as in Keras, so the layers after it use all steps";
}

} // namespace mtc::keras
