// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/LayerTable.h"

namespace mtc::keras {

static bool isKerasLayer(llvm::StringRef module) {
  return module.empty() || module == "keras" || module.starts_with("keras.layers") ||
         module.starts_with("keras.src.layers");
}

// Functions of keras.ops: their classes have the names of layers, but take their tensors as separate arguments.
static bool isOperator(llvm::StringRef module) {
  return module.starts_with("keras.src.ops") || module.starts_with("keras.ops");
}

static BuildLayer findEntry(llvm::ArrayRef<LayerEntry> entries, llvm::StringRef className) {
  for (const LayerEntry &entry : entries)
    if (className == entry.className)
      return entry.build;
  return nullptr;
}

BuildLayer findLayer(const Layer &layer) {
  if (isOperator(layer.module)) {
    for (llvm::ArrayRef<LayerEntry> family :
         {operatorLayers(), functionLayers(), tensorPartLayers(), attentionFunctions()})
      if (BuildLayer build = findEntry(family, layer.className))
        return build;
    return nullptr;
  }
  if (!isKerasLayer(layer.module))
    return nullptr;
  for (llvm::ArrayRef<LayerEntry> family :
       {activationLayers(), attentionLayers(), augmentationLayers(), convolutionLayers(), convolvingCellLayers(),
        denseLayers(), einsumLayers(), imageLayers(), mergingLayers(), noiseLayers(), normalizationLayers(),
        poolingLayers(), recurrentLayers(), resizingLayers(), scalingLayers(), scoredAttentionLayers(), shapeLayers()})
    if (BuildLayer build = findEntry(family, layer.className))
      return build;
  return nullptr;
}

std::string adviceFor(const Layer &layer) {
  static constexpr const char *images = "convolutions over three axes inside a recurrent layer are not compiled: use "
                                        "Conv3D before a recurrent layer";
  static constexpr const char *text =
      "apply it to the data beforehand, save the numbers that it gives (numpy.save), and build the "
      "model without it, on an input of these numbers";
  static constexpr const char *code =
      "it holds Python code, which a file does not have: mtc.fit and mtc.compile trace the model where it is made "
      "(docs/keras-traces.md); or write it with the layers of Keras and the functions of keras.ops";
  static constexpr std::pair<const char *, const char *> advice[] = {
      {"ConvLSTM3D", images},
      {"TextVectorization", text},
      {"StringLookup", text},
      {"IntegerLookup", text},
      {"Hashing", text},
      {"HashedCrossing", text},
      {"Discretization", text},
      {"CategoryEncoding",
       "save the labels as one-hot rows (keras.utils.to_categorical), or use an Embedding of the integers"},
      {"Lambda", code},
      {"TFOpLambda", code},
      {"GroupedQueryAttention", "use MultiHeadAttention, or keras.ops.matmul and Softmax"},
      {"TimeDistributed", "of layers along the last axis (Dense, Embedding, activations, LayerNormalization, Dropout) "
                          "it is compiled; others take "
                          "the steps as samples, as data of one step per sample"},
  };
  for (auto [name, words] : advice)
    if (layer.className == name)
      return words;
  if (!isKerasLayer(layer.module) && !isOperator(layer.module))
    return "a custom class is Python code, which a file does not have: mtc.fit and mtc.compile trace the model where "
           "it is made (docs/keras-traces.md); or write it with the layers of Keras";
  return {};
}

} // namespace mtc::keras
