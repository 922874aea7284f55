// SPDX-License-Identifier: Apache-2.0
//
// Kernels that accompany library calls (runtime/abi/gpu_kernel.h). Their buffers are operand, result and sizes.
#ifndef COMPILER_CODEGEN_GPU_CALLKERNELS_H
#define COMPILER_CODEGEN_GPU_CALLKERNELS_H

#include "compiler/codegen/gpu/Block.h"

namespace mtc {

void emitClearRows(BlockKernel &kernel);
void emitSumShards(BlockKernel &kernel);
void emitTransposeTiles(BlockKernel &kernel);

} // namespace mtc

#endif
