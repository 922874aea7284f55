// SPDX-License-Identifier: Apache-2.0
//
// The table of all supported layers and their builders.
#ifndef FRONTEND_KERAS_LAYERTABLE_H
#define FRONTEND_KERAS_LAYERTABLE_H

#include "frontend/keras/LayerBuilder.h"

namespace mtc::keras {

using BuildLayer = mlir::Value (*)(LayerBuilder &);

struct LayerEntry {
  const char *className;
  BuildLayer build;
};

// The part of the table for each family, in layers/.
llvm::ArrayRef<LayerEntry> activationLayers();
llvm::ArrayRef<LayerEntry> attentionLayers();
llvm::ArrayRef<LayerEntry> scoredAttentionLayers();
llvm::ArrayRef<LayerEntry> augmentationLayers();
llvm::ArrayRef<LayerEntry> convolutionLayers();
llvm::ArrayRef<LayerEntry> convolvingCellLayers();
llvm::ArrayRef<LayerEntry> denseLayers();
llvm::ArrayRef<LayerEntry> einsumLayers();
llvm::ArrayRef<LayerEntry> imageLayers();
llvm::ArrayRef<LayerEntry> mergingLayers();
llvm::ArrayRef<LayerEntry> noiseLayers();
llvm::ArrayRef<LayerEntry> normalizationLayers();
llvm::ArrayRef<LayerEntry> poolingLayers();
llvm::ArrayRef<LayerEntry> recurrentLayers();
llvm::ArrayRef<LayerEntry> resizingLayers();
llvm::ArrayRef<LayerEntry> scalingLayers();
llvm::ArrayRef<LayerEntry> shapeLayers();
// Functions on tensors (keras.ops), which are layers in a saved model.
llvm::ArrayRef<LayerEntry> operatorLayers();
llvm::ArrayRef<LayerEntry> functionLayers();
llvm::ArrayRef<LayerEntry> tensorPartLayers();
llvm::ArrayRef<LayerEntry> attentionFunctions();

// Null if the class is unknown.
BuildLayer findLayer(const Layer &layer);
// Advice for a class that is not in the table; empty: none.
std::string adviceFor(const Layer &layer);

// Gives the result of a call the mask that it has in Keras, unless the builder has read the mask itself. Emits an error
// at a layer whose result depends on the mask.
void passMask(LayerBuilder &layer);

// Applies the activation under a key of the layer's config, which is a Keras name or a layer. Returns the value itself
// if there is none; emits an error and returns null if it is unknown.
mlir::Value activate(LayerBuilder &layer, mlir::Value value, llvm::StringRef key = "activation");

// The layer that concatenates tensors along `axis`.
mlir::Value buildConcatenate(LayerBuilder &layer);
// Softmax over axes of x; negative axes count from the end.
mlir::Value softmaxOver(LayerBuilder &layer, mlir::Value x, llvm::SmallVector<int64_t> axes);
// The option `axis`, one or several axes; `otherwise` if it is null, which for functions means all axes including the
// batch axis.
llvm::SmallVector<int64_t> readAxes(LayerBuilder &layer, int64_t otherwise = 0);
// Sorted axes of x; negative axes count from the end. Emits an error if an axis is the batch axis, is out of range, or
// occurs twice.
std::optional<llvm::SmallVector<int64_t>> sampleAxes(LayerBuilder &layer, mlir::Value x, llvm::ArrayRef<int64_t> axes);

} // namespace mtc::keras

#endif
