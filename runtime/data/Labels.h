// SPDX-License-Identifier: Apache-2.0
//
// Labels of a dataset: how they become what a target takes, what they must be below, and how they are numbered.
#pragma once

#include "runtime/data/Dataset.h"

namespace mtrun {

// The number at an element of a sample of a field in memory.
double valueAt(const Field &field, uint64_t sample, uint64_t element);

// A field in memory as an entry of integers takes it: whole numbers of floats become integers, and one-hot rows for a
// target of one label the indices of their ones. Others stay. MT_INVALID: they are neither, and what to do.
Status makeIntegers(Field &field, const mtrun_tensor_info &entry);

// Checks what is in memory of integers against what the model says of them, before the run; a callback's are looked at
// as they come. `entries` are those that the columns were bound to. MT_INVALID.
Status limitIntegers(const DataSpec &spec, const std::vector<const mtrun_tensor_info *> &entries, mtrun_dataset &data);

// Makes a column of weights by the labels' classes, for the model's only input of weights. MT_INVALID.
Status addClassWeights(const std::vector<mtrun_tensor_info> &entries, mtrun_dataset &data);

// The labels of data whose classes have names are numbered as in `names`; nothing to do where either has none.
// MT_INVALID: a class is not among them.
Status numberLabels(mtrun_dataset &data, const std::vector<std::string> &names);

// What an entry's labels must be below as the model's only output tells it: its last axis, where it has one axis more
// than the entry.
std::optional<int64_t> outputClasses(const Plan &plan, int32_t targetRank);

} // namespace mtrun
