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
// A tail, with the lines of its samples.
struct Tail {
  mlir::plan::KernelOp op;
  LineForm form;
  bool isNumbers() const { return mlir::plan::KernelOp(op).getKind() == mlir::mt::KernelKind::single; }
};
// The end of a kernel of `blocks` blocks with tails: a sum over the batch, or for a convolution sums inside of samples,
// and perhaps their sum over the batch. The buffers of the tails follow the kernel's.
mlir::LogicalResult emitTails(BlockKernel &head, llvm::ArrayRef<Tail> tails, mlir::Value blocks);
// The kernel of a tail, whose buffers are after the first `buffers` ones of the head. The workgroup memory is the
// head's, which has no more use for it.
BlockKernel tailKernel(BlockKernel &head, const Tail &tail, int64_t buffers);
// A tail of single numbers, which have nothing to do with the head: its first block computes them.
mlir::LogicalResult emitNumbers(BlockKernel &head, const Tail &tail);
// The tiles of a convolution's or a product's results, if successive tiles are side by side and have equal numbers of
// columns. A sample has `pixels` rows, in each residue of a convolution (Image.h).
struct TileShape {
  ProductTile tile;
  int64_t pixels, residues, columns;
  int64_t across() const { return columns / tile.columns; }
};
std::optional<TileShape> convTileShape(mlir::plan::KernelOp op);
std::optional<TileShape> matmulTileShape(mlir::plan::KernelOp op);
// The same of either kind; empty for other kinds.
std::optional<TileShape> tileShapeOf(mlir::plan::KernelOp op);
// out = a + b.
void emitBlockSum(BlockKernel &kernel);

} // namespace mtc

#endif
