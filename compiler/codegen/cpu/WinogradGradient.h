// SPDX-License-Identifier: Apache-2.0
//
// The kernel gradient of a convolution by Winograd's algorithm: for each of the 16 elements of a tile, the product of
// (channels, tiles) and (tiles, filters), summed over the tiles of each sample in order, then over the samples of a
// shard in order. The sums of a shard are transformed to taps before the tree adds them, so that the bits do not depend
// on the devices that have the shards.
#ifndef COMPILER_CODEGEN_CPU_WINOGRADGRADIENT_H
#define COMPILER_CODEGEN_CPU_WINOGRADGRADIENT_H

#include "compiler/codegen/common/Tree.h"
#include "compiler/codegen/cpu/Tile.h"
#include "compiler/codegen/cpu/Winograd.h"

namespace mtc {

// For convolutions for which `isWinogradGradient` holds.
class WinogradGradient {
public:
  WinogradGradient(Kernel &kernel, Product product, mlir::Value source, mlir::Value gradient, mlir::Value result);
  // Number of tiles of the grid; a tile is some channels of a panel of filters.
  static int64_t tiles(const Product &product);
  void run();
  // Emits the gradient of one sample, without a tree.
  void runSample();

private:
  Kernel &kernel;
  Emitter &emit;
  Product product;
  const Residue &residue;
  mlir::Value source, gradient, result;
  int64_t windowSize, wideSize; // channels of a window, and columns of a wide panel
  // Strides, in floats, of the elements of pixels, positions and sums. One extra vector keeps the elements of a tile
  // out of the same set of the L1 cache.
  int64_t pixelsStride, positionsStride, sumsStride;
  // `packed` is the gradient at the positions of a block; `pixels` and `positions` are transformed.
  mlir::Value haloBuffer, packed, pixels, positions, elementSums, sums;

  // Some channels, for the filters of a wide panel. The window has `channels` channels; this part has `used` of them,
  // from `from` on.
  struct Part {
    mlir::Value column;
    mlir::Value window;
    int64_t channels;
    mlir::Value from, used;
  };
  // Calls `body` for the panels, of the width of the target's tiles, of the wide panel, with the first column of each.
  void forPanelsOf(const Part &part, llvm::function_ref<void(mlir::Value offset, Panel panel)> body);
  void forParts(mlir::Value begin, mlir::Value end, llvm::function_ref<void(const Part &)> body);
  void emitPart(const Part &part, const Shards &shards);
  void clearSums(const Part &part);
  void emitSamples(const Part &part, mlir::Value first, mlir::Value end);
  // Transforms the pixels and positions of a block, whose first tile has the number `tile`.
  void emitTiles(const Part &part, mlir::Value sample, mlir::Value row, mlir::Value rows, BlockColumn column,
                 int64_t columns, mlir::Value tile);
  void emitPixels(const Part &part, mlir::Value sample, mlir::Value row, mlir::Value rows, BlockColumn column,
                  int64_t columns, mlir::Value tile);
  void emitPositions(Panel panel, mlir::Value rows, int64_t columns, mlir::Value start);
  void packPositions(mlir::Value filter, Panel panel, mlir::Value sample, mlir::Value row, mlir::Value rows,
                     BlockColumn column, int64_t columns);
  void emitProducts(const Part &part, mlir::Value count);
  void emitTaps(const Part &part);
  void store(const Part &part);
};

} // namespace mtc

#endif
