// SPDX-License-Identifier: Apache-2.0
//
// Writes predictions: .npy for one output, .npz for several, .csv for people and spreadsheets.
#pragma once

#include "runtime/abi/mt.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mtrun {

// The description of an output that is written.
struct Predicted {
  std::string name;
  mt_dtype dtype = MT_F32;
  std::vector<int64_t> shape; // shape for all samples
  uint64_t rowBytes = 0;
  std::vector<std::string> classes; // the classes of the scores; empty: the values are not class scores
};

// The samples that the predictions belong to.
struct PredictedSamples {
  int64_t count = 0;
  std::function<std::string(int64_t index)> file; // name of a sample's file; null: samples have no files
  std::function<int64_t(int64_t index)> number;
  std::vector<std::string> classNames; // names of the labels; empty: unknown
};

class Predictions {
public:
  virtual ~Predictions() = default;
  virtual Status open(const std::string &path, const std::vector<Predicted> &outputs,
                      const PredictedSamples &samples) = 0;
  // Writes the next `count` rows of each output.
  virtual Status add(const std::vector<const std::byte *> &rows, int64_t count) = 0;
  virtual Status commit() = 0;
};

// Chooses the format by the extension of `path`. MT_INVALID: the extension is unknown.
Status makePredictions(const std::string &path, std::unique_ptr<Predictions> &predictions);

} // namespace mtrun
