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
llvm::ArrayRef<LayerEntry> convolutionLayers();
llvm::ArrayRef<LayerEntry> denseLayers();
llvm::ArrayRef<LayerEntry> imageLayers();
llvm::ArrayRef<LayerEntry> mergingLayers();
llvm::ArrayRef<LayerEntry> noiseLayers();
llvm::ArrayRef<LayerEntry> normalizationLayers();
llvm::ArrayRef<LayerEntry> poolingLayers();
llvm::ArrayRef<LayerEntry> scalingLayers();
llvm::ArrayRef<LayerEntry> shapeLayers();
// Functions on tensors (keras.ops), which appear in models as layers do.
llvm::ArrayRef<LayerEntry> operatorLayers();

// Null where the class is not known.
BuildLayer findLayer(const Layer &layer);
// Why a class is not in the table and what to do instead; empty: nothing more to say.
std::string adviceFor(const Layer &layer);

// Applies an activation by its Keras name; null and an error for one that is not known.
mlir::Value buildActivation(LayerBuilder &layer, mlir::Value value, const std::string &name);

} // namespace mtc::keras

#endif
