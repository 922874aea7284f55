// SPDX-License-Identifier: Apache-2.0
//
// The .keras file to which a trained model is exported: the model's own config, and every variable of its layers and of
// its optimizer.
#ifndef FRONTEND_KERAS_EXPORT_H
#define FRONTEND_KERAS_EXPORT_H

#include "frontend/ExportArchive.h"
#include "frontend/keras/Weights.h"
#include "frontend/training/TrainingOptions.h"

namespace mtc::keras {

// `config` is the model's JSON as text, and `parsed` the same parsed. `options` replace settings of its compile_config.
// `archive`, after matchWeights, has the tensors that the model does not use; null for a model from JSON. `classNames`
// are added to the metadata, which Keras does not read. Returns an empty text, or the error.
std::string makeExport(const std::string &config, const Json &parsed, const TrainingOptions &options,
                       const Archive *archive, const FileVariables &variables,
                       const std::vector<std::string> &classNames, ExportArchive &result);

// Replaces settings in Keras' compile_config by the settings of the options, as objects that Keras can deserialize.
void replaceTraining(const TrainingOptions &options, Json &model);

} // namespace mtc::keras

#endif
