// SPDX-License-Identifier: Apache-2.0
//
// Measures the peak rates of this machine, with which a profile compares kernels.
#pragma once

#include <cstdint>

namespace mtrun_tool {

struct Peak {
  double flops; // single-precision FLOPs per second, as fused multiply-adds
  double bytes; // bytes read and written per second, in copies inside a block
};

// Runs `threads` threads and returns the best of several short runs. Copies `block` bytes, the plan's memory, so that a
// plan that fits into a cache is compared with the speed of this cache.
Peak measurePeak(int threads, int64_t block);

} // namespace mtrun_tool
