// SPDX-License-Identifier: Apache-2.0
//
// Matrix products by a block: a tile of the result is in registers, `depth` positions of k (a panel) of both sides are
// in workgroup memory, and the next panels are being loaded from device memory. An element is one FMA chain in the
// order of k or, with tensor cores (TensorProduct.cpp), one chain of pieces of 8 or 16.
#ifndef COMPILER_CODEGEN_GPU_PRODUCT_H
#define COMPILER_CODEGEN_GPU_PRODUCT_H

#include "compiler/codegen/gpu/Block.h"

#include <numeric>

namespace mtc {

struct TileRows;

// Number of float32 elements of one load, if they are contiguous and aligned.
constexpr int64_t chunkElements = maxAccessBytes / 4;

// One side of a product. A panel is divided into chunks, several per thread: `chunk` elements of one row and successive
// k (deep), or of one k and successive rows.
struct ProductSide {
  bool deep = false;
  int64_t chunk = 1;  // contiguous and aligned elements of a chunk (chunkOf)
  mlir::Type element; // in memory
  // Returns values that a thread keeps for a chunk at (line, k) of every panel, counted from the tile's first row and
  // the panel's first k.
  std::function<Emitter::Values(mlir::Value line, mlir::Value k)> prepare;
  // Address of the chunk in the panel at `position`. A chunk that does not exist has an address that can be read.
  struct Chunk {
    mlir::Value address, there; // there (i1): the chunk exists
  };
  std::function<Chunk(mlir::ValueRange kept, mlir::ValueRange position)> locate;
};

// The panels over which a sum runs.
struct ProductPanels {
  mlir::Value count;     // i64
  Emitter::Values first; // position of the first panel, in terms that `locate` and `following` define
  std::function<Emitter::Values(mlir::ValueRange position)> following; // also called for some positions after the last
};

// Stores of a thread for adjacent elements of a tile. They are executed only if `there` (i1) is true.
struct ProductResult {
  mlir::Value there;
  llvm::SmallVector<BlockStore> stores;
};

class ProductBlock {
public:
  // `element` is the element type of both sides.
  ProductBlock(BlockKernel &kernel, const ProductTile &tile, mlir::Type element);

  // Returns sums + the product of the panels. All threads must call it.
  Emitter::Values add(const ProductSide &left, const ProductSide &right, const ProductPanels &panels,
                      mlir::ValueRange sums);
  Emitter::Values zeros();
  int64_t count() const { return tile.perRow * tile.perColumn; }
  // Distributes the elements of the tile over the threads, through workgroup memory: each thread gets `vectorWidth` (1
  // or 4) adjacent elements of a row at a time, and adjacent groups of elements go to adjacent threads. `each` receives
  // i64 indices and may load operands. A thread loads for several results before it stores the first. All threads must
  // call it, once. If the kernel adds up its results for a tail (BlockKernel::sums), `tileRows` tells where they are.
  void finish(mlir::ValueRange sums, int64_t vectorWidth,
              llvm::function_ref<ProductResult(mlir::Value row, mlir::Value column, mlir::ValueRange sums)> each,
              const TileRows *tileRows = nullptr);
  // Workgroup memory for one number, for code between the sums and `finish`.
  mlir::Value flag() { return memory; }

private:
  BlockKernel &kernel;
  Emitter &emit;
  ProductTile tile;
  mlir::Type element;
  mlir::Value memory;      // panels of both sides; at the end the sums
  mlir::Value row, column; // of the thread's first sum, or of its warp's first sum, i64

  using Kept = llvm::SmallVector<Emitter::Values>;
  int64_t lines(bool left) const { return left ? tile.rows : tile.columns; }
  int64_t chunks(const ProductSide &side, bool left) const {
    return ceilDiv(lines(left) * tile.depth, side.chunk * tile.threads());
  }
  std::pair<mlir::Value, mlir::Value> chunkPosition(const ProductSide &side, bool left, int64_t number);
  // Whether the thread has a chunk with this number; null: all threads have.
  mlir::Value hasChunk(const ProductSide &side, bool left, int64_t number);
  Kept prepare(const ProductSide &side, bool left);
  Emitter::Values fetch(const ProductSide &side, const Kept &kept, mlir::ValueRange position);
  // The loaded chunks, as f32 if FMAs read them.
  Emitter::Values arrived(const ProductSide &side, mlir::ValueRange fetched);
  Emitter::Values load(const ProductSide &side, const Kept &kept, mlir::ValueRange position) {
    return arrived(side, fetch(side, kept, position));
  }
  // Largest number of bytes of sums in workgroup memory at a time; stride of their rows in elements.
  int64_t stagedBytes() const;
  int64_t stagedStride() const;
  int64_t passes() const;
  void stage(mlir::ValueRange sums, int64_t firstRow, int64_t rows);
  int64_t resultsPerLoad(int64_t all, int64_t vectorWidth);

  // FMAs: two panels, one k at a time.
  //
  // Stride of k in elements: adjacent positions of k are in different banks, and groups of four are aligned.
  int64_t stride(bool left) const { return lines(left) + 4; }
  int64_t panel() const { return tile.depth * (stride(true) + stride(false)); }
  // Successive elements of the thread along rows or columns.
  int64_t vectorWidth(int64_t each) const { return std::gcd(each, chunkElements); }
  int64_t offset(int64_t index, int64_t each, int64_t threads) const {
    return index / vectorWidth(each) * vectorWidth(each) * threads + index % vectorWidth(each);
  }
  void divideAmongThreads();
  // Tiles with few sums per thread have few warps, and registers to load the elements of an iteration of the inner loop
  // one iteration ahead. Steps of k per iteration; few for large tiles, because ptxas is slow for more.
  bool readsAhead() const { return count() <= 32; }
  int64_t stepsAtOnce() const { return count() <= 8 ? 8 : readsAhead() ? 4 : 2; }
  void store(const ProductSide &side, bool left, mlir::ValueRange fetched, mlir::Value panels);
  Emitter::Values fragment(mlir::Value panels, int64_t each, int64_t threads);
  Emitter::Values fragments(mlir::Value panels, mlir::Value k, int64_t step);
  // Sums + the product of a panel.
  Emitter::Values multiply(mlir::Value panels, mlir::ValueRange sums);

  // Tensor cores (TensorProduct.cpp).
  mlir::Value lane, lineInWarp, pairInWarp; // i64: the lane, lane / 4, lane % 4
  bool isTensor() const { return kernel.precision == Precision::tensor; }
  int64_t warpColumns() const {
    return isByWarpgroup() ? tile.columns : std::min<int64_t>(tile.columns, count() < 16 ? 16 : 32);
  }
  int64_t warpRows() const { return 32 * count() / warpColumns(); }
  int64_t elementBytes() const { return emit.bytes(element); }
  int64_t panelBytes(bool left) const { return lines(left) * tile.depth * elementBytes(); }
  int64_t stageBytes() const { return panelBytes(true) + panelBytes(false); }
  int64_t stages() const;
  // Whether four warps compute the product by wgmma.
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

// The tile with the depth of its panels: unchanged for FMAs; with tensor cores, as many positions as 64 or 128 bytes
// hold.
ProductTile withDepth(const BlockKernel &kernel, ProductTile tile, mlir::Type element);

// Loads `count` elements at an aligned address; 16-bit elements are converted to f32.
mlir::Value loadChunk(Emitter &emit, mlir::Type element, mlir::Value address, int64_t count);
void storeChunk(Emitter &emit, mlir::ValueRange values, mlir::Value address);
// The stores in f32, for storeAdjacent.
llvm::SmallVector<BlockStore> storesOf(Emitter &emit, mlir::ValueRange values, mlir::Value address);

// `value` if `there` is true, else 0.
mlir::Value orZero(Emitter &emit, mlir::Value there, mlir::Value value);
// Number of elements of a load of an operand that is read in runs of `run` elements: as many as 16 bytes hold, or fewer
// if the run is not a multiple of that. For FMAs it is 1 or chunkElements.
int64_t chunkOf(const BlockKernel &kernel, mlir::Value operand, int64_t run);

// Sides that are matrices in memory: `matrix` is an argument of the kernel or a slice of one, which is read in place. A
// position is k, an i64.
//
// Side of a matrix [k, width]: row i of the side is column lines.first + i. Rows from lines.end on do not exist. k ends
// before `end`.
struct Lines {
  mlir::Value first, end; // i64
};
ProductSide matrixAcross(BlockKernel &kernel, mlir::Value matrix, int64_t width, Lines lines, mlir::Value end);
// Side of a matrix [lines, depth]: row i of the side is row lines.first + i.
ProductSide matrixAlong(BlockKernel &kernel, mlir::Value matrix, int64_t depth, Lines lines);
// Panels of positions [from, to).
ProductPanels panelsOf(Emitter &emit, const ProductTile &tile, mlir::Value from, mlir::Value to);

} // namespace mtc

#endif
