// SPDX-License-Identifier: Apache-2.0
//
// What this machine can do at best, measured: the floor that a profile compares with.
#pragma once

#include <cstdint>

namespace mtrun_tool {

struct Peak {
  double flops; // single-precision FLOPs a second, of fused multiply-adds
  double bytes; // read and written a second, in copies inside a block
};

// On `threads` threads at once, the best of several runs of milliseconds; `block` bytes are copied, the plan's own
// footprint, so that what fits a cache is compared with that cache.
Peak measurePeak(int threads, int64_t block);

} // namespace mtrun_tool
