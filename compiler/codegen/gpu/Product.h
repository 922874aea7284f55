// SPDX-License-Identifier: Apache-2.0
//
// Contractions by a block: a tile of the result in the threads' registers, `depth` positions of k at a time (a panel)
// of both sides in workgroup memory, the next panels on their way from device memory meanwhile. An element is one FMA
// chain in order of k, or with tensor cores (TensorProduct.cpp) one chain of pieces of 8 or 16.
#ifndef COMPILER_CODEGEN_GPU_PRODUCT_H
#define COMPILER_CODEGEN_GPU_PRODUCT_H

#include "compiler/codegen/gpu/Block.h"

#include <numeric>

namespace mtc {

// Elements of float32 that one load brings where they lie together and on their boundary.
constexpr int64_t chunkElements = maxAccessBytes / 4;

// One side of a product. A panel is cut into chunks, some for each thread: `chunk` elements of one line and successive
// k (deep), or of one k and successive lines.
struct ProductSide {
  bool deep = false;
  int64_t chunk = 1;  // elements that lie together in memory, on the boundary of their bytes (chunkOf)
  mlir::Type element; // in memory
  // What a thread keeps of a chunk at (line, k) of every panel; counted from the tile's first line and the panel's
  // first k.
  std::function<Emitter::Values(mlir::Value line, mlir::Value k)> prepare;
  // Where the chunk in the panel at `position` lies. What is not there has an address that can be read.
  struct Chunk {
    mlir::Value address, there; // there: i1
  };
  std::function<Chunk(mlir::ValueRange kept, mlir::ValueRange position)> locate;
};

// The panels that a sum runs over.
struct ProductPanels {
  mlir::Value count;                                                   // i64
  Emitter::Values first;                                               // where the first panel is, in any terms
  std::function<Emitter::Values(mlir::ValueRange position)> following; // also asked for some after the last
};

// What a thread stores of adjacent elements of a tile, if they are there (i1); addresses that are not are not used.
struct ProductResult {
  mlir::Value there;
  llvm::SmallVector<BlockStore> stores;
};

class ProductBlock {
public:
  // `element` is that of both sides.
  ProductBlock(BlockKernel &kernel, const ProductTile &tile, mlir::Type element);

  // sums + what the panels add. All threads together.
  Emitter::Values add(const ProductSide &left, const ProductSide &right, const ProductPanels &panels,
                      mlir::ValueRange sums);
  Emitter::Values zeros();
  int64_t count() const { return tile.perRow * tile.perColumn; }
  // Gives every element of the tile (i64 indices) to a thread, by way of workgroup memory: `together` (1 or 4) adjacent
  // ones of a row at a time, those beside them to the thread beside it. `each` may read what is there. A thread reads
  // for several before it stores the first. All threads together, once.
  void finish(mlir::ValueRange sums, int64_t together,
              llvm::function_ref<ProductResult(mlir::Value row, mlir::Value column, mlir::ValueRange sums)> each);
  // Workgroup memory for a number, until `finish`. For what comes between sums and it.
  mlir::Value flag() { return memory; }

private:
  BlockKernel &kernel;
  Emitter &emit;
  ProductTile tile;
  mlir::Type element;
  mlir::Value memory;      // panels of both sides; in the end the sums
  mlir::Value row, column; // of the thread's first sum, or of its warp's, i64

  using Kept = llvm::SmallVector<Emitter::Values>;
  int64_t lines(bool left) const { return left ? tile.rows : tile.columns; }
  int64_t chunks(const ProductSide &side, bool left) const {
    return ceilDiv(lines(left) * tile.depth, side.chunk * tile.threads());
  }
  std::pair<mlir::Value, mlir::Value> chunkPosition(const ProductSide &side, bool left, int64_t number);
  // Whether the thread has a chunk of this number; null: all threads have.
  mlir::Value hasChunk(const ProductSide &side, bool left, int64_t number);
  Kept prepare(const ProductSide &side, bool left);
  Emitter::Values fetch(const ProductSide &side, const Kept &kept, mlir::ValueRange position);
  // The chunks fetched, as f32 where FMAs take them.
  Emitter::Values arrived(const ProductSide &side, mlir::ValueRange fetched);
  Emitter::Values load(const ProductSide &side, const Kept &kept, mlir::ValueRange position) {
    return arrived(side, fetch(side, kept, position));
  }
  // Bytes of sums that are in workgroup memory at once at most; elements from row to row there.
  int64_t stagedBytes() const;
  int64_t stagedStride() const;
  int64_t passes() const;
  void stage(mlir::ValueRange sums, int64_t firstRow, int64_t rows);
  int64_t resultsTogether(int64_t all, int64_t together);

  // FMAs: two panels, k by k.
  // Elements from k to k: adjacent positions of k are in other banks, fours on their boundary.
  int64_t stride(bool left) const { return lines(left) + 4; }
  int64_t panel() const { return tile.depth * (stride(true) + stride(false)); }
  // Successive elements of the thread's along rows or columns.
  int64_t together(int64_t each) const { return std::gcd(each, chunkElements); }
  int64_t offset(int64_t index, int64_t each, int64_t threads) const {
    return index / together(each) * together(each) * threads + index % together(each);
  }
  void divideAmongThreads();
  // Tiles of few sums per thread have few warps, and registers to read the elements of a turn of the inner loop in the
  // turn before it. Steps of k of a turn; those of large tiles are few because ptxas takes longer for more.
  bool readsAhead() const { return count() <= 32; }
  int64_t stepsAtOnce() const { return count() <= 8 ? 8 : readsAhead() ? 4 : 2; }
  void store(const ProductSide &side, bool left, mlir::ValueRange fetched, mlir::Value panels);
  Emitter::Values fragment(mlir::Value panels, int64_t each, int64_t threads);
  Emitter::Values fragments(mlir::Value panels, mlir::Value k, int64_t step);
  // Sums + what a panel adds.
  Emitter::Values multiply(mlir::Value panels, mlir::ValueRange sums);

  // Tensor cores (TensorProduct.cpp).
  mlir::Value lane, lineInWarp, pairInWarp; // i64; lane / 4, lane % 4
  bool isTensor() const { return kernel.precision == Precision::tensor; }
  int64_t warpColumns() const {
    return isByWarpgroup() ? tile.columns : std::min<int64_t>(tile.columns, count() < 16 ? 16 : 32);
  }
  int64_t warpRows() const { return 32 * count() / warpColumns(); }
  int64_t elementBytes() const { return emit.bytes(element); }
  int64_t panelBytes(bool left) const { return lines(left) * tile.depth * elementBytes(); }
  int64_t stageBytes() const { return panelBytes(true) + panelBytes(false); }
  int64_t stages() const;
  // Of four warps together, by wgmma.
  bool isByWarpgroup() const;
  int64_t warpgroupRows() const { return 4 * tile.rows * warpThreads / tile.threads(); }
  Emitter::Values startByWarpgroup(bool leftDeep, bool rightDeep, mlir::Value stage, mlir::ValueRange sums);
  int64_t rowBytes(bool deep, bool left) const { return (deep ? tile.depth : lines(left)) * elementBytes(); }
  void divideAmongWarps();
  mlir::Value offsetOf(bool deep, bool left, mlir::Value row, mlir::Value byte);
  Emitter::Values offsetsOf(const ProductSide &side, bool left);
  Emitter::Values fragmentOffsets(bool deep, bool left);
  void copy(const ProductSide &side, bool left, const Kept &kept, mlir::ValueRange offsets, mlir::ValueRange position,
            mlir::Value stage, mlir::Value wanted);
  void put(const ProductSide &side, bool left, mlir::ValueRange loaded, mlir::ValueRange offsets, mlir::Value stage);
  Emitter::Values operand(bool deep, bool left, mlir::Value panel, mlir::ValueRange offsets, int64_t number,
                          int64_t step);
  Emitter::Values multiplyPieces(bool leftDeep, bool rightDeep, mlir::Value stage, mlir::ValueRange leftOffsets,
                                 mlir::ValueRange rightOffsets, mlir::ValueRange sums);
  Emitter::Values addPieces(const ProductSide &left, const ProductSide &right, const ProductPanels &panels,
                            mlir::ValueRange sums);
  int64_t pieceRow(int64_t piece) const;
  void stagePieces(mlir::ValueRange sums, int64_t firstRow, int64_t rows);
};

// A tile with the depth of its panels: of FMAs, or with tensor cores as many positions as 64 bytes hold, or 128.
ProductTile withDepth(const BlockKernel &kernel, ProductTile tile, mlir::Type element);

// `count` elements at an address on their boundary, as f32 where they are of 16 bits.
mlir::Value loadChunk(Emitter &emit, mlir::Type element, mlir::Value address, int64_t count);
void storeChunk(Emitter &emit, mlir::ValueRange values, mlir::Value address);
// The same in f32, for storeTogether.
llvm::SmallVector<BlockStore> storesOf(Emitter &emit, mlir::ValueRange values, mlir::Value address);

// `value` where it is there, else 0.
mlir::Value orZero(Emitter &emit, mlir::Value there, mlir::Value value);
// Elements of a load of an operand of the kernel that is read in runs of so many: as many as 16 bytes hold, or less if
// the run is no multiple of that. With FMAs 1 or chunkElements.
int64_t chunkOf(const BlockKernel &kernel, mlir::Value operand, int64_t run);

// Sides that are matrices in memory: `matrix` is an argument of the kernel, or a slice of one, which is read where it
// lies. A position is k, an i64.
// [k, width]: line i is column lines.first + i, and those from lines.end on are not there; k ends before `end`.
struct Lines {
  mlir::Value first, end; // i64
};
ProductSide matrixAcross(BlockKernel &kernel, mlir::Value matrix, int64_t width, Lines lines, mlir::Value end);
// [lines, depth]: line i is row lines.first + i.
ProductSide matrixAlong(BlockKernel &kernel, mlir::Value matrix, int64_t depth, Lines lines);
// Panels of positions [from, to).
ProductPanels panelsOf(Emitter &emit, const ProductTile &tile, mlir::Value from, mlir::Value to);

} // namespace mtc

#endif
