// SPDX-License-Identifier: Apache-2.0
//
// Kernels on GPUs: the grid and the emitter of each kind.
#ifndef COMPILER_CODEGEN_GPU_KERNELS_H
#define COMPILER_CODEGEN_GPU_KERNELS_H

#include "compiler/codegen/gpu/Block.h"

namespace mtc {

GpuGrid rowsGpuGrid(mlir::plan::KernelOp op, int64_t shardRows);
GpuGrid singleGpuGrid(mlir::plan::KernelOp op, int64_t shardRows);
GpuGrid elementwiseGpuGrid(mlir::plan::KernelOp op, int64_t shardRows);
GpuGrid matmulGpuGrid(mlir::plan::KernelOp op, int64_t shardRows);
GpuGrid matmulWgradGpuGrid(mlir::plan::KernelOp op, int64_t shardRows);
GpuGrid reduceGpuGrid(mlir::plan::KernelOp op, int64_t shardRows);
GpuGrid transposeGpuGrid(mlir::plan::KernelOp op, int64_t shardRows);
GpuGrid convGpuGrid(mlir::plan::KernelOp op, int64_t shardRows);
GpuGrid convWgradGpuGrid(mlir::plan::KernelOp op, int64_t shardRows);
GpuGrid scatterAddGpuGrid(mlir::plan::KernelOp op, int64_t shardRows);
GpuGrid attentionGpuGrid(mlir::plan::KernelOp op, int64_t shardRows);

mlir::LogicalResult emitBlockRows(BlockKernel &kernel);
mlir::LogicalResult emitBlockElements(BlockKernel &kernel); // rows, elements of which need no others
mlir::LogicalResult emitBlockSingle(BlockKernel &kernel);
mlir::LogicalResult emitBlockElementwise(BlockKernel &kernel);
mlir::LogicalResult emitBlockMatmul(BlockKernel &kernel);
mlir::LogicalResult emitBlockMatmulWgrad(BlockKernel &kernel);
mlir::LogicalResult emitBlockReduce(BlockKernel &kernel);
mlir::LogicalResult emitBlockTranspose(BlockKernel &kernel);
mlir::LogicalResult emitBlockConv(BlockKernel &kernel);
mlir::LogicalResult emitBlockConvWgrad(BlockKernel &kernel);
mlir::LogicalResult emitBlockScatterAdd(BlockKernel &kernel);
mlir::LogicalResult emitBlockAttention(BlockKernel &kernel); // an error: mt-decompose-attention leaves none for GPUs
// out = a + b.
void emitBlockSum(BlockKernel &kernel);

} // namespace mtc

#endif
