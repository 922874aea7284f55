// SPDX-License-Identifier: Apache-2.0
//
// How code is made for each kind of kernel, one row per kind (dialects/mt/KernelKinds.cmake lists them): nameGrid and
// emitName of codegen/cpu, nameGpuGrid and emitBlockName of codegen/gpu. What a kernel of a kind may hold is its row in
// dialects/mt/KernelKinds.cpp.
#ifndef COMPILER_CODEGEN_KERNELKINDS_H
#define COMPILER_CODEGEN_KERNELKINDS_H

#include "compiler/codegen/common/Kernel.h"

namespace mtc {

struct BlockKernel;
struct GpuGrid;

struct KernelCode {
  mlir::mt::KernelKind kind;
  Grid (*cpuGrid)(mlir::plan::KernelOp op);
  mlir::LogicalResult (*emitCpu)(Kernel &kernel); // the body of the function
  // Of a normalised kernel, without its workgroup memory.
  GpuGrid (*gpuGrid)(mlir::plan::KernelOp op, int64_t shardRows);
  mlir::LogicalResult (*emitGpu)(BlockKernel &kernel); // the body of the gpu.func, for a tile that is there
};
const KernelCode &codeOf(mlir::plan::KernelOp op);

} // namespace mtc

#endif
