// SPDX-License-Identifier: Apache-2.0
#ifndef TEST_SIMULATED_CUDA_TENSORCORES_H
#define TEST_SIMULATED_CUDA_TENSORCORES_H

#include "runtime/abi/gpu_kernel.h"

#include <bit>
#include <cmath>

namespace simulated {

// mt_sim_thread::multiply: threads show one another their words between two barriers; sums are chains in order of k.
// Blocks that take turns have a number each.
template <int block = 0> void multiplyPieces(const mt_sim_thread *thread, uint32_t *words) {
  static const uint32_t *shown[1024];
  shown[thread->thread] = words;
  thread->barrier(thread);
  const uint32_t *const *warp = shown + thread->thread / 32 * 32;
  uint32_t lane = thread->thread % 32, sums[4];
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    float sum = std::bit_cast<float>(words[6 + i]);
    for (uint32_t k = 0; k < 8; ++k)
      sum = std::fma(std::bit_cast<float>(warp[row % 8 * 4 + k % 4][row / 8 + k / 4 * 2]),
                     std::bit_cast<float>(warp[column * 4 + k % 4][4 + k / 4]), sum);
    sums[i] = std::bit_cast<uint32_t>(sum);
  }
  thread->barrier(thread);
  for (uint32_t i = 0; i < 4; ++i)
    words[6 + i] = sums[i];
}

} // namespace simulated

#endif
