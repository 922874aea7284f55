// SPDX-License-Identifier: Apache-2.0
//
// The batches of the golden runs: NumPy's default generator, and the images and labels drawn from it.
#ifndef MTC_TEST_GOLDEN_BATCHES_H
#define MTC_TEST_GOLDEN_BATCHES_H

#include <cstdint>
#include <vector>

namespace golden {

struct Batch {
  std::vector<float> images;   // (rows, 784)
  std::vector<int32_t> labels; // (rows)
  std::vector<float> oneHot;   // (rows, 10)
};

/// `rows` samples from `seed`: a template of the label's class plus noise, clipped to [0, 1].
Batch makeBatch(int64_t rows, uint32_t seed);

} // namespace golden
#endif
