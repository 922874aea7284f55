// SPDX-License-Identifier: Apache-2.0
//
// The gradient of a convolution to its kernel by Winograd's algorithm: for each of the 16 elements of a tile the
// product of (channels, tiles) and (tiles, filters), summed over the tiles of each sample in order and the samples of a
// shard in order. A shard's sums become taps before the tree adds them, so that the bits do not depend on where shards
// lie.
#ifndef COMPILER_CODEGEN_CPU_WINOGRADGRADIENT_H
#define COMPILER_CODEGEN_CPU_WINOGRADGRADIENT_H

#include "compiler/codegen/common/Tree.h"
#include "compiler/codegen/cpu/Tile.h"
#include "compiler/codegen/cpu/Winograd.h"

namespace mtc {

// Of a convolution of which `isWinogradGradient` holds.
class WinogradGradient {
public:
  WinogradGradient(Kernel &kernel, Product product, mlir::Value source, mlir::Value gradient, mlir::Value result);
  // Tiles of the grid: each is some channels of a panel of filters.
  static int64_t tiles(const Product &product);
  void run();
  // Of one sample, without a tree.
  void runSample();

private:
  Kernel &kernel;
  Emitter &emit;
  Product product;
  const Residue &residue;
  mlir::Value source, gradient, result;
  int64_t windowSize, wideSize; // channels of a window, and columns of a wide panel
  // Floats from an element's pixels, positions and sums to the next one's. The vectors between them keep the elements
  // of a tile out of one set of the first cache.
  int64_t pixelsApart, positionsApart, sumsApart;
  // `packed` are the gradient's positions as they are; `pixels` and `positions` are transformed.
  mlir::Value haloBuffer, packed, pixels, positions, elementSums, sums;

  // Some channels, for the filters of a wide panel. `channels` lie in the window, `used` is how many of them this is
  // about, from `from` on.
  struct Part {
    mlir::Value column;
    mlir::Value window;
    int64_t channels;
    mlir::Value from, used;
  };
  // Calls `body` for the panels that the machine's tiles cut from the wide one: where a panel starts in it.
  void forPanelsOf(const Part &part, llvm::function_ref<void(mlir::Value offset, Panel panel)> body);
  void forParts(mlir::Value begin, mlir::Value end, llvm::function_ref<void(const Part &)> body);
  void emitPart(const Part &part, const Shards &shards);
  void clearSums(const Part &part);
  void emitSamples(const Part &part, mlir::Value first, mlir::Value end);
  // Transforms a block's pixels and positions; its tiles are those from `tile` on.
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
