// SPDX-License-Identifier: Apache-2.0
//
// How the caller trains a model whose file does not say it, or says it otherwise.
#ifndef FRONTEND_TRAINING_TRAININGOPTIONS_H
#define FRONTEND_TRAINING_TRAININGOPTIONS_H

#include "frontend/ChosenVariables.h"

#include <map>
#include <string>
#include <vector>

namespace mtc {

// What a model that was not compiled lacks, and what replaces what it has. Empty: as the file says.
struct TrainingOptions {
  std::string loss;      // "mse", "sparse_categorical_crossentropy,from_logits=true": for every output
  std::string optimizer; // "adam", "sgd,learning_rate=0.1,momentum=0.9"
  std::string metrics;   // "accuracy", "accuracy+mae"; "none"
  bool dropUnsupportedMetrics = false;
  bool sampleWeights = false; // losses and weighted metrics have weights of samples, an input that may be absent
  FreezeOptions frozen;
  bool freezeBatchNorm = false;                            // it computes as in prediction
  std::string noWeightDecay;                               // patterns as those of `frozen`
  std::vector<std::string> classNames;                     // of the labels; the file's own are those of its metadata
  std::map<std::string, std::vector<int64_t>> inputShapes; // by input; "": of the only one. For axes of any size
  int64_t length = 0; // of sequences: of an axis of any size behind the batch axis; 0: not known
};

} // namespace mtc

#endif
