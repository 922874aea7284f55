// SPDX-License-Identifier: Apache-2.0
//
// Kernels that library calls need beside them (runtime/abi/gpu_kernel.h). Their buffers: operand, result, sizes.
#ifndef COMPILER_CODEGEN_GPU_CALLKERNELS_H
#define COMPILER_CODEGEN_GPU_CALLKERNELS_H

#include "compiler/codegen/gpu/Block.h"

namespace mtc {

void emitClearRows(BlockKernel &kernel);
void emitSumShards(BlockKernel &kernel);
void emitTransposeTiles(BlockKernel &kernel);

} // namespace mtc

#endif
