// SPDX-License-Identifier: Apache-2.0
//
// What kernels for GPUs are cut by. A plan has one grid per kernel, for all GPUs that may run it, so these numbers hold
// on every architecture (runtime/support/gpu_architecture.h). Some also decide the order of a sum, and with it the bits
// of results: those never depend on the architecture, and are marked where they are defined.
#ifndef COMPILER_CODEGEN_GPU_GPUTARGET_H
#define COMPILER_CODEGEN_GPU_GPUTARGET_H

#include "runtime/support/gpu_architecture.h"

#include <algorithm>
#include <cstdint>

namespace mtc {

// CUDA C++ Programming Guide, technical specifications: the same for all compute capabilities from 7.5 on.
constexpr int64_t warpThreads = 32, maxBlockThreads = 1024;
// Workgroup memory of a block that asks for no more than what every GPU gives.
constexpr int64_t maxSharedBytes = 48 << 10;
// Of the widest access to memory of a thread.
constexpr int64_t maxAccessBytes = 16;

// Workgroup memory of the multiprocessor that has least.
constexpr int64_t leastSharedBytes() {
  int64_t least = mtrun::gpuArchitectures[0].sharedBytes;
  for (const mtrun::GpuArchitecture &architecture : mtrun::gpuArchitectures)
    least = std::min<int64_t>(least, architecture.sharedBytes);
  return least;
}

// The GPU that grids are meant to fill: an H100. Another one here would be another order of sums over the batch.
constexpr int64_t usualMultiprocessors = mtrun::gpuArchitecture(90).multiprocessors;

} // namespace mtc

#endif
