// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_CODEGEN_GPU_TREE_H
#define COMPILER_CODEGEN_GPU_TREE_H

#include "compiler/codegen/common/Tree.h"
#include "compiler/codegen/gpu/Product.h"

namespace mtc {

// Sums over samples along the tree (compiler/codegen/common/Tree.h), `sums` of them per thread: `shard(from, to)`
// returns the sums of a shard. Completed left siblings are in workgroup memory. All threads must execute it.
void emitBlockTree(BlockKernel &kernel, int64_t sums,
                   llvm::function_ref<Emitter::Values(mlir::Value from, mlir::Value to)> shard,
                   llvm::function_ref<void(mlir::ValueRange root)> finish);
// The same for these shards.
void emitBlockTree(BlockKernel &kernel, int64_t sums, const Shards &shards,
                   llvm::function_ref<Emitter::Values(mlir::Value from, mlir::Value to)> shard,
                   llvm::function_ref<void(mlir::ValueRange root)> finish);

// A product summed over the batch that has too few tiles to fill a GPU: a block sums a slice of one shard, `positions`
// of its k. The last block of a shard to finish adds the slices of the shard in order, and the last shard to finish
// adds the shards along the tree. Partial sums are in device memory. The division of a shard does not depend on the
// device. Without slices, a block sums all shards.
struct SplitK {
  int64_t slices = 0, positions = 0;
};
struct ProductTree {
  ProductTile tile;
  int64_t tiles, lines; // tiles of the result; positions of k per sample
  SplitK cut;
};
// For `count` results [rows, columns].
ProductTree productTree(mlir::plan::KernelOp op, int64_t rows, int64_t columns, int64_t count, int64_t lines,
                        int64_t shardRows);
GpuGrid treeGrid(mlir::plan::KernelOp op, const ProductTree &tree, int64_t shardRows);
// The tile of the result to which a block belongs.
mlir::Value resultTile(BlockKernel &kernel, const ProductTree &tree);
// `sum(sample, from, to)` returns the sums of positions [from, to) of the batch's k, which are all in a shard whose
// first sample is `sample`. All threads must execute it.
void emitProductTree(BlockKernel &kernel, ProductBlock &block, const ProductTree &tree,
                     llvm::function_ref<Emitter::Values(mlir::Value sample, mlir::Value from, mlir::Value to)> sum,
                     llvm::function_ref<void(mlir::ValueRange root)> finish);

// Whether this block is the last of `expected` to increment a counter of the segment (BlockKernel::counters), which is
// then reset to 0. Stores of the other blocks before their increment are visible. `flag`: an i32 in workgroup memory.
mlir::Value isLastBlock(BlockKernel &kernel, mlir::Value counter, mlir::Value expected, mlir::Value flag);

// Number of levels with left siblings, for this number of shards.
int64_t siblingLevels(mlir::plan::KernelOp op, bool fast);

} // namespace mtc

#endif
