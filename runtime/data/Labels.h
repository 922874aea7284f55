// SPDX-License-Identifier: Apache-2.0
//
// Labels of a dataset: conversion to integers, limits, and numbers of classes.
#pragma once

#include "runtime/data/Dataset.h"

namespace mtrun {

// Returns an element of a sample of a field in memory.
double valueAt(const Field &field, uint64_t sample, uint64_t element);

// Converts a field in memory for an integer entry: floats that are whole numbers become integers, and one-hot rows
// become the indices of their 1, for a target with one label. Other fields are not changed. MT_INVALID: the values are
// neither; the message says what to do.
Status makeIntegers(Field &field, const mtrun_tensor_info &entry);

// Checks integers in memory against the model's limits before the run; values of a callback are checked when they are
// read. `entries`: the entries of the columns. MT_INVALID.
Status limitIntegers(const DataSpec &spec, const std::vector<const mtrun_tensor_info *> &entries, mtrun_dataset &data);

// Adds a column with the weights of the labels' classes, for the model's only input of sample weights. MT_INVALID.
Status addClassWeights(const std::vector<mtrun_tensor_info> &entries, mtrun_dataset &data);

// Renumbers labels whose classes have names by their index in `names`. Does nothing if the data or `names` has no
// names. MT_INVALID: a class is not in `names`.
Status numberLabels(mtrun_dataset &data, const std::vector<std::string> &names);

// Returns the limit of an entry's labels from the model's only output: the size of its last axis, if the output has one
// axis more than the entry.
std::optional<int64_t> outputClasses(const Plan &plan, int32_t targetRank);

} // namespace mtrun
