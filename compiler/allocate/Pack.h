// SPDX-License-Identifier: Apache-2.0
//
// Gives buffers with known live ranges their offsets in one address range.
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

// The most bytes alive in one phase: no packing can need less.
int64_t livenessBound(std::span<const LiveBuffer> buffers);

// Best fit: the largest buffer first, each into the tightest gap between buffers that live at the same time; other
// orders are tried where this one misses the bound, then changed ones, then a search with a fixed seed, and the best is
// taken. Buffers that are alive in one phase never overlap.
Packing packBuffers(std::span<const LiveBuffer> buffers);

} // namespace mtc
