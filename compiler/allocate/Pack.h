// SPDX-License-Identifier: Apache-2.0
//
// Assigns offsets in one address range to buffers with known live ranges.
#pragma once

#include "compiler/allocate/LiveBuffer.h"
#include "runtime/support/device_memory.h"

#include <span>
#include <vector>

namespace mtc {

using mtrun::alignBuffer;
using mtrun::bufferAlignment;

struct Packing {
  std::vector<int64_t> offsets; // one per buffer
  int64_t bytes = 0;            // end of the highest buffer
};

// The largest number of bytes that are live in one phase, a lower bound of every packing.
int64_t livenessBound(std::span<const LiveBuffer> buffers);

// Best fit: packs the buffers by decreasing size, each into the tightest gap between buffers that are live at the same
// time. If the result misses the liveness bound, tries other orders, then improved orders, then a local search with a
// fixed seed, and returns the best packing. Buffers that are live in the same phase never overlap.
Packing packBuffers(std::span<const LiveBuffer> buffers);

} // namespace mtc
