// SPDX-License-Identifier: Apache-2.0
//
// Hardware limits from which tiles are derived. A plan has one grid per kernel, for all GPUs that may run it, so these
// numbers hold on every architecture (runtime/support/gpu_architecture.h). Some also determine the order of a sum, and
// thus the bits of results; they never depend on the architecture, and are marked where they are defined.
#ifndef COMPILER_CODEGEN_GPU_GPUTARGET_H
#define COMPILER_CODEGEN_GPU_GPUTARGET_H

#include "runtime/support/gpu_architecture.h"

#include <algorithm>
#include <cstdint>

namespace mtc {

// CUDA C++ Programming Guide, technical specifications: the same for all compute capabilities from 7.5 on.
constexpr int64_t warpThreads = 32, maxBlockThreads = 1024;
// Largest static workgroup memory of a block, on every GPU.
constexpr int64_t maxSharedBytes = 48 << 10;
// Size of the largest memory access of a thread.
constexpr int64_t maxAccessBytes = 16;

// Workgroup memory of the multiprocessor with the least.
constexpr int64_t minSharedBytes() {
  int64_t least = mtrun::gpuArchitectures[0].sharedBytes;
  for (const mtrun::GpuArchitecture &architecture : mtrun::gpuArchitectures)
    least = std::min<int64_t>(least, architecture.sharedBytes);
  return least;
}

// Multiprocessors of the GPU that grids should fill, an H100. Another number would change the order of sums over the
// batch.
constexpr int64_t usualMultiprocessors = mtrun::gpuArchitecture(90).multiprocessors;

} // namespace mtc

#endif
