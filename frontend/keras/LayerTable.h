// SPDX-License-Identifier: Apache-2.0
//
// The closed table: which layers are known, and what builds them.
#ifndef FRONTEND_KERAS_LAYERTABLE_H
#define FRONTEND_KERAS_LAYERTABLE_H

#include "frontend/keras/LayerBuilder.h"

namespace mtc::keras {

using BuildLayer = mlir::Value (*)(LayerBuilder &);

struct LayerEntry {
  const char *className;
  BuildLayer build;
};

// Each family's part of the table, in layers/.
llvm::ArrayRef<LayerEntry> activationLayers();
llvm::ArrayRef<LayerEntry> attentionLayers();
llvm::ArrayRef<LayerEntry> augmentationLayers();
llvm::ArrayRef<LayerEntry> convolutionLayers();
llvm::ArrayRef<LayerEntry> denseLayers();
llvm::ArrayRef<LayerEntry> imageLayers();
llvm::ArrayRef<LayerEntry> mergingLayers();
llvm::ArrayRef<LayerEntry> noiseLayers();
llvm::ArrayRef<LayerEntry> normalizationLayers();
llvm::ArrayRef<LayerEntry> poolingLayers();
llvm::ArrayRef<LayerEntry> recurrentLayers();
llvm::ArrayRef<LayerEntry> resizingLayers();
llvm::ArrayRef<LayerEntry> scalingLayers();
llvm::ArrayRef<LayerEntry> shapeLayers();
// Functions on tensors (keras.ops), which appear in models as layers do.
llvm::ArrayRef<LayerEntry> operatorLayers();
llvm::ArrayRef<LayerEntry> functionLayers();
llvm::ArrayRef<LayerEntry> tensorPartLayers();
llvm::ArrayRef<LayerEntry> attentionFunctions();

// Null where the class is not known.
BuildLayer findLayer(const Layer &layer);
// Why a class is not in the table and what to do instead; empty: nothing more to say.
std::string adviceFor(const Layer &layer);

// Gives the result of a call the mask that it has in Keras, where its builder has not read the mask itself; an error at
// a layer that computes something else with a mask.
void passMask(LayerBuilder &layer);

// Applies the activation that a key of the layer's config has, by its Keras name or as a layer; the value itself where
// it has none, null and an error for one that is not known.
mlir::Value activate(LayerBuilder &layer, mlir::Value value, llvm::StringRef key = "activation");

// The layer that joins tensors along `axis`.
mlir::Value buildConcatenate(LayerBuilder &layer);
// Softmax over axes of x, counted from the end where negative.
mlir::Value softmaxOver(LayerBuilder &layer, mlir::Value x, llvm::SmallVector<int64_t> axes);
// `axis` of a config, one or several; `otherwise` where it is null, which for functions is all axes, the batch too.
llvm::SmallVector<int64_t> readAxes(LayerBuilder &layer, int64_t otherwise = 0);
// Axes of x, counted from the end where negative, in order; an error where one is the batch axis, is none of x, or
// stands twice.
std::optional<llvm::SmallVector<int64_t>> sampleAxes(LayerBuilder &layer, mlir::Value x, llvm::ArrayRef<int64_t> axes);

} // namespace mtc::keras

#endif
