// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices by a block: a tile of the result in the threads' registers, `depth` positions of k at a time of
// both sides in workgroup memory. An element is one FMA chain in order of k.
#ifndef COMPILER_CODEGEN_GPU_PRODUCT_H
#define COMPILER_CODEGEN_GPU_PRODUCT_H

#include "compiler/codegen/gpu/Block.h"

namespace mtc {

class ProductBlock {
public:
  ProductBlock(BlockKernel &kernel, const ProductTile &tile);

  // Elements of the sides, only asked for what is there; 0 elsewhere.
  struct Side {
    bool depthFirst; // whether neighbours along k lie next to each other
    llvm::function_ref<mlir::Value(mlir::Value line, mlir::Value k)>
        load; // null outside; line counts from the tile's first
  };
  // sums + what positions [from, to) of k add. All threads together.
  Emitter::Values add(Side left, Side right, mlir::Value from, mlir::Value to, mlir::ValueRange sums);
  Emitter::Values zeros();
  // Place of sum `index` in the tile: (row, column).
  std::pair<mlir::Value, mlir::Value> placeOf(int64_t index);
  int64_t count() const { return tile.perRow * tile.perColumn; }

private:
  BlockKernel &kernel;
  Emitter &emit;
  ProductTile tile;
  mlir::Value left, right; // in workgroup memory, k by k
  mlir::Value row, column; // of the thread's first sum
  void fill(Side side, mlir::Value place, int64_t lines, mlir::Value from, mlir::Value to);
  int64_t stride(int64_t lines) const { return lines + 1; } // so that threads along k write to different banks
};

} // namespace mtc

#endif
