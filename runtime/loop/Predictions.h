// SPDX-License-Identifier: Apache-2.0
//
// Files of predictions: .npy of one output, .npz of several, .csv for people and spreadsheets.
#pragma once

#include "runtime/abi/mt.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mtrun {

// An output as it is written.
struct Predicted {
  std::string name;
  mt_dtype dtype = MT_F32;
  std::vector<int64_t> shape; // of all samples
  uint64_t rowBytes = 0;
  std::vector<std::string> classes; // that its values are scores of; empty: of none
};

// Whose predictions they are.
struct PredictedSamples {
  int64_t count = 0;
  std::function<std::string(int64_t index)> file; // of a sample; null: they have none
  std::function<int64_t(int64_t index)> number;
  std::vector<std::string> classNames; // of labels; empty: not known
};

class Predictions {
public:
  virtual ~Predictions() = default;
  virtual Status open(const std::string &path, const std::vector<Predicted> &outputs,
                      const PredictedSamples &samples) = 0;
  // The next `count` rows of each output.
  virtual Status add(const std::vector<const std::byte *> &rows, int64_t count) = 0;
  virtual Status commit() = 0;
};

// By the end of the file's name. MT_INVALID: none that we write.
Status makePredictions(const std::string &path, std::unique_ptr<Predictions> &predictions);

} // namespace mtrun
