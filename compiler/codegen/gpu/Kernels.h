// SPDX-License-Identifier: Apache-2.0
//
// Kernels on GPUs: the grid and the emitter of each kind.
#ifndef COMPILER_CODEGEN_GPU_KERNELS_H
#define COMPILER_CODEGEN_GPU_KERNELS_H

#include "compiler/codegen/gpu/Block.h"

namespace mtc {

// Grid of a canonical kernel of each kind, without its workgroup memory; and the emitter of the body of the gpu.func,
// for a tile that exists.
#define KIND(kind, name, Name)                                                                                         \
  GpuGrid name##GpuGrid(mlir::plan::KernelOp op, int64_t shardRows);                                                   \
  mlir::LogicalResult emitBlock##Name(BlockKernel &kernel);
#include "dialects/mt/KernelKinds.def"
// rows and single kernels whose elements are computed independently
mlir::LogicalResult emitBlockElements(BlockKernel &kernel);
// out = a + b.
void emitBlockSum(BlockKernel &kernel);

} // namespace mtc

#endif
