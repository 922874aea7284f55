// SPDX-License-Identifier: Apache-2.0
//
// Samples that are held out to validate on.
#pragma once

#include "runtime/data/Dataset.h"

#include <memory>

namespace mtrun {

// How a share of the samples is held out.
struct SplitOptions {
  double share = 0;
  bool last = false; // the last samples, else drawn by `seed`, each class by the same share
  int64_t seed = 0;
};

// Two datasets of the samples of one; what they lack of its classes is in their notes, which are no others. MT_INVALID.
Status splitDataset(const mtrun_dataset &data, const SplitOptions &options, std::unique_ptr<mtrun_dataset> &training,
                    std::unique_ptr<mtrun_dataset> &validation);

// What tells two choices of samples apart; 0: the dataset is no choice of another's samples.
int64_t choiceHash(const mtrun_dataset &data);

// What tells data apart whose samples hold other values, in hexadecimal digits: a hash of some samples as the model
// takes them, the first and the last among them, and of the options that change others. "": it cannot be told, of a
// caller's callback or where one of these samples is damaged.
std::string contentHash(const mtrun_dataset &data);

} // namespace mtrun
