// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/LayerTable.h"

namespace mtc::keras {

static bool isKerasLayer(llvm::StringRef module) {
  return module.empty() || module == "keras" || module.starts_with("keras.layers") || module.starts_with("keras.src.layers");
}

// keras.ops: their classes share names with layers but take their tensors one by one.
static bool isOperator(llvm::StringRef module) { return module.starts_with("keras.src.ops") || module.starts_with("keras.ops"); }

static BuildLayer findEntry(llvm::ArrayRef<LayerEntry> entries, llvm::StringRef className) {
  for (const LayerEntry &entry : entries)
    if (className == entry.className)
      return entry.build;
  return nullptr;
}

BuildLayer findLayer(const Layer &layer) {
  if (isOperator(layer.module)) {
    for (llvm::ArrayRef<LayerEntry> family : {operatorLayers(), functionLayers(), tensorPartLayers()})
      if (BuildLayer build = findEntry(family, layer.className))
        return build;
    return nullptr;
  }
  if (!isKerasLayer(layer.module))
    return nullptr;
  for (llvm::ArrayRef<LayerEntry> family :
       {activationLayers(), attentionLayers(), augmentationLayers(), convolutionLayers(), denseLayers(), imageLayers(), mergingLayers(), noiseLayers(),
        normalizationLayers(), poolingLayers(), resizingLayers(), scalingLayers(), shapeLayers()})
    if (BuildLayer build = findEntry(family, layer.className))
      return build;
  return nullptr;
}

std::string adviceFor(const Layer &layer) {
  static constexpr const char *recurrent[] = {"LSTM",          "GRU",        "SimpleRNN",  "RNN",
                                              "Bidirectional", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"};
  for (const char *name : recurrent)
    if (layer.className == name)
      return "recurrent layers are not compiled: use convolutions or attention over the time axis";
  if (layer.className == "Lambda" || layer.className == "TFOpLambda")
    return "it holds Python code: write it with the layers and functions of keras.ops";
  if (layer.className == "TimeDistributed")
    return "Dense and the normalisations work along the last axis of any input: use the layer without it";
  if (layer.className == "Masking")
    return "masks are not compiled: pad with zeros and weigh the samples";
  if (!isKerasLayer(layer.module) && !isOperator(layer.module))
    return "a custom class is Python code: write it with the layers of Keras";
  return {};
}

} // namespace mtc::keras
