// SPDX-License-Identifier: Apache-2.0
//
// The files that convert.py writes: what Keras computed.
#ifndef MTC_TEST_GOLDEN_GOLDENFILE_H
#define MTC_TEST_GOLDEN_GOLDENFILE_H

#include <cstdint>
#include <string>
#include <vector>

namespace golden {

struct Step {
  int64_t rows;
  double loss, accuracy; // of the batch, before the update
};

struct Tensor {
  std::string set, name; // "after1", "dense/kernel"
  int64_t count, stride; // elements in all; every stride-th is in `values`
  double sum, magnitude; // over all elements: of the values, of their magnitudes
  std::vector<float> values;
};

struct File {
  std::vector<Step> steps;
  std::vector<Tensor> tensors;
};

/// Reads a whole file. Throws std::runtime_error that says what is wrong.
File readFile(const std::string &path);

} // namespace golden
#endif
