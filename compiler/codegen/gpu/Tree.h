// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_CODEGEN_GPU_TREE_H
#define COMPILER_CODEGEN_GPU_TREE_H

#include "compiler/codegen/common/Tree.h"
#include "compiler/codegen/gpu/Product.h"

namespace mtc {

// Sums over samples by the tree (compiler/codegen/common/Tree.h), each thread its own `sums` of them: `shard(from, to)`
// gives a shard's. Finished left siblings wait in workgroup memory. All threads together.
void emitBlockTree(BlockKernel &kernel, int64_t sums,
                   llvm::function_ref<Emitter::Values(mlir::Value from, mlir::Value to)> shard,
                   llvm::function_ref<void(mlir::ValueRange root)> finish);
// The same for these shards.
void emitBlockTree(BlockKernel &kernel, int64_t sums, const Shards &shards,
                   llvm::function_ref<Emitter::Values(mlir::Value from, mlir::Value to)> shard,
                   llvm::function_ref<void(mlir::ValueRange root)> finish);

// A product summed over the batch whose tiles are too few to fill a GPU: a block sums a slice of one shard, `positions`
// of its k. The last block of a shard to be done adds its slices in order, the last shard to be done adds the shards by
// the tree; partial sums lie in device memory. A shard's cut does not depend on the device. No slices: a block sums all
// shards.
struct SplitK {
  int64_t slices = 0, positions = 0;
};
struct ProductTree {
  ProductTile tile;
  int64_t tiles, lines; // of the result; positions of k that a sample has
  SplitK cut;
};
// Of `count` results [rows, columns].
ProductTree productTree(mlir::plan::KernelOp op, int64_t rows, int64_t columns, int64_t count, int64_t lines,
                        int64_t shardRows);
GpuGrid treeGrid(mlir::plan::KernelOp op, const ProductTree &tree, int64_t shardRows);
// The tile of the result that a block works on.
mlir::Value resultTile(BlockKernel &kernel, const ProductTree &tree);
// `sum(sample, from, to)` gives what positions [from, to) of the batch's k add, all in a shard whose first sample is
// `sample`. All threads together.
void emitProductTree(BlockKernel &kernel, ProductBlock &block, const ProductTree &tree,
                     llvm::function_ref<Emitter::Values(mlir::Value sample, mlir::Value from, mlir::Value to)> sum,
                     llvm::function_ref<void(mlir::ValueRange root)> finish);

// Levels at which siblings wait, of this many shards.
int64_t siblingLevels(mlir::plan::KernelOp op, bool fast);

} // namespace mtc

#endif
