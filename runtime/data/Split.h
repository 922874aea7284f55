// SPDX-License-Identifier: Apache-2.0
//
// Splits validation samples off a dataset.
#pragma once

#include "runtime/data/Dataset.h"

#include <memory>

namespace mtrun {

// Which samples are held out.
struct SplitOptions {
  double share = 0;
  bool last = false; // the last samples; otherwise samples are drawn by `seed`, with an equal share of each class
  int64_t seed = 0;
};

// Splits a dataset in two. The notes of each part name only the classes that it lacks. MT_INVALID.
Status splitDataset(const mtrun_dataset &data, const SplitOptions &options, std::unique_ptr<mtrun_dataset> &training,
                    std::unique_ptr<mtrun_dataset> &validation);

// Returns a hash of the chosen samples' indices; 0 if the dataset has all samples of its source.
int64_t choiceHash(const mtrun_dataset &data);

// Returns a hash, in hexadecimal digits, of the data's values: of some samples as the model reads them, including the
// first and the last, and of the options that change values. "": unknown, for a caller's callback or if one of these
// samples is damaged.
std::string contentHash(const mtrun_dataset &data);

} // namespace mtrun
