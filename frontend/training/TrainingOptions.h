// SPDX-License-Identifier: Apache-2.0
//
// Training settings of the caller, which add to the settings of the model's file or replace them.
#ifndef FRONTEND_TRAINING_TRAININGOPTIONS_H
#define FRONTEND_TRAINING_TRAININGOPTIONS_H

#include "frontend/ChosenVariables.h"

#include <map>
#include <string>
#include <vector>

namespace mtc {

// An empty option keeps the setting of the file.
struct TrainingOptions {
  std::string loss;      // for every output: "mse", "sparse_categorical_crossentropy,from_logits=true"
  std::string optimizer; // "adam", "sgd,learning_rate=0.1,momentum=0.9"
  std::string metrics;   // "accuracy", "accuracy+mae"; "none"
  bool dropUnsupportedMetrics = false;
  bool sampleWeights = false; // losses and weighted metrics have sample weights, an input that may be missing
  FreezeOptions frozen;
  bool freezeBatchNorm = false; // batch normalization computes as in prediction
  RateOptions rates;
  std::vector<std::string> classNames; // names of labels; the file's metadata may have others
  // shapes of inputs with axes of unknown size, by name; "": of the only input
  std::map<std::string, std::vector<int64_t>> inputShapes;
  int64_t length = 0; // length of sequences, the size of an unknown second axis; 0: unknown
  bool step = false;  // the function of a StableHLO file is a whole training step
  std::string state;  // its arguments that are state, and the results that replace them: "0-7:1-8,9:10=step"
  std::string split;  // its arguments with a sample for each index of the first axis: "8=images,9"
};

} // namespace mtc

#endif
