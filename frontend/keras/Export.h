// SPDX-License-Identifier: Apache-2.0
//
// The .keras file that a trained model is written back as: the model's own config, and every variable of its layers and
// of its optimizer.
#ifndef FRONTEND_KERAS_EXPORT_H
#define FRONTEND_KERAS_EXPORT_H

#include "frontend/ExportArchive.h"
#include "frontend/keras/Weights.h"
#include "frontend/training/TrainingOptions.h"

namespace mtc::keras {

// `config` is the model's JSON, as text and parsed. Its compile_config says what the options replace. `archive`, after
// matchWeights, has what the model does without; null for a model that came as JSON. `classNames` go to the metadata,
// which Keras does not read. Empty on success, else what went wrong.
std::string makeExport(const std::string &config, const Json &parsed, const TrainingOptions &options,
                       const Archive *archive, const FileVariables &variables,
                       const std::vector<std::string> &classNames, ExportArchive &result);

// The compile_config of Keras with what the options replace, as objects that Keras makes again.
void replaceTraining(const TrainingOptions &options, Json &model);

} // namespace mtc::keras

#endif
