// SPDX-License-Identifier: Apache-2.0
//
// The code generators of each kernel kind, one row per kind (dialects/mt/KernelKinds.cmake lists the kinds): nameGrid
// and emitName in codegen/cpu, nameGpuGrid and emitBlockName in codegen/gpu. dialects/mt/KernelKinds.cpp states what a
// kernel of each kind may hold.
#ifndef COMPILER_CODEGEN_KERNELKINDS_H
#define COMPILER_CODEGEN_KERNELKINDS_H

#include "compiler/codegen/common/Kernel.h"

namespace mtc {

struct BlockKernel;
struct GpuGrid;

struct KernelCode {
  mlir::mt::KernelKind kind;
  Grid (*cpuGrid)(mlir::plan::KernelOp op);
  mlir::LogicalResult (*emitCpu)(Kernel &kernel); // emits the body of the function
  // Grid of a kernel with a canonical body, without its workgroup memory.
  GpuGrid (*gpuGrid)(mlir::plan::KernelOp op, int64_t shardRows);
  mlir::LogicalResult (*emitGpu)(BlockKernel &kernel); // emits the body of the gpu.func, for one tile of the grid
};
const KernelCode &codeOf(mlir::plan::KernelOp op);

} // namespace mtc

#endif
