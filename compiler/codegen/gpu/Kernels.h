// SPDX-License-Identifier: Apache-2.0
//
// Kernels on GPUs: the grid and the emitter of each kind.
#ifndef COMPILER_CODEGEN_GPU_KERNELS_H
#define COMPILER_CODEGEN_GPU_KERNELS_H

#include "compiler/codegen/gpu/Block.h"

namespace mtc {

// How the tiles of a normalised kernel of each kind are counted, without its workgroup memory; the body of the
// gpu.func, for a tile that is there.
#define KIND(kind, name, Name)                                                                                         \
  GpuGrid name##GpuGrid(mlir::plan::KernelOp op, int64_t shardRows);                                                   \
  mlir::LogicalResult emitBlock##Name(BlockKernel &kernel);
#include "dialects/mt/KernelKinds.def"
mlir::LogicalResult emitBlockElements(BlockKernel &kernel); // rows and single, elements of which need no others
// out = a + b.
void emitBlockSum(BlockKernel &kernel);

} // namespace mtc

#endif
