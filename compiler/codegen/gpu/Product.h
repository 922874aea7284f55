// SPDX-License-Identifier: Apache-2.0
//
// Contractions by a block: a tile of the result in the threads' registers, `depth` positions of k at a time (a panel)
// of both sides in workgroup memory, the next panel on its way from device memory meanwhile. An element is one FMA
// chain in order of k.
#ifndef COMPILER_CODEGEN_GPU_PRODUCT_H
#define COMPILER_CODEGEN_GPU_PRODUCT_H

#include "compiler/codegen/gpu/Block.h"

namespace mtc {

// Elements of float32 that one load brings where they lie together and on their boundary.
constexpr int64_t chunkElements = maxAccessBytes / 4;

// One side of a product. A panel is cut into chunks, some for each thread: `chunk` elements of one line and successive
// k (deep), or of one k and successive lines.
struct ProductSide {
  bool deep = false;
  int64_t chunk = 1; // 1 or chunkElements; then lines and k are there in fours
  // What a thread keeps of a chunk at (line, k) of every panel; counted from the tile's first line and the panel's
  // first k.
  std::function<Emitter::Values(mlir::Value line, mlir::Value k)> prepare;
  // The chunk in the panel at `position`: an f32 or a vector of them; 0 for what is not there.
  std::function<mlir::Value(mlir::ValueRange kept, mlir::ValueRange position)> load;
};

// The panels that a sum runs over.
struct ProductPanels {
  mlir::Value count;                                                   // i64
  Emitter::Values first;                                               // where the first panel is, in any terms
  std::function<Emitter::Values(mlir::ValueRange position)> following; // also asked for the one after the last
};

class ProductBlock {
public:
  ProductBlock(BlockKernel &kernel, const ProductTile &tile);

  // sums + what the panels add. All threads together.
  Emitter::Values add(const ProductSide &left, const ProductSide &right, const ProductPanels &panels,
                      mlir::ValueRange sums);
  Emitter::Values zeros();
  int64_t count() const { return tile.perRow * tile.perColumn; }
  // Gives every element of the tile that lies in it (i64 indices) to a thread, adjacent elements to adjacent threads,
  // by way of workgroup memory. All threads together, once.
  void finish(mlir::ValueRange sums,
              llvm::function_ref<void(mlir::Value row, mlir::Value column, mlir::Value sum)> each);

private:
  BlockKernel &kernel;
  Emitter &emit;
  ProductTile tile;
  mlir::Value memory;              // two panels of both sides, k by k; in the end the sums
  mlir::Value row, column;         // of the thread's first sum, i64
  mlir::Value lineInWarp, kInWarp; // with tensor cores: of the thread's first operands, i64

  using Kept = llvm::SmallVector<Emitter::Values>;
  int64_t lines(bool left) const { return left ? tile.rows : tile.columns; }
  // Elements from k to k: adjacent positions of k are in other banks, fours on their boundary.
  int64_t stride(bool left) const { return lines(left) + (kernel.precision == Precision::f32 ? 4 : 8); }
  int64_t panel() const { return tile.depth * (stride(true) + stride(false)); }
  int64_t chunks(const ProductSide &side, bool left) const {
    return ceilDiv(lines(left) * tile.depth, side.chunk * tile.threads());
  }
  // Successive elements of the thread's along rows or columns.
  int64_t together(int64_t each) const { return each % chunkElements ? 1 : chunkElements; }
  int64_t offset(int64_t index, int64_t each, int64_t threads) const {
    return index / together(each) * together(each) * threads + index % together(each);
  }
  std::pair<mlir::Value, mlir::Value> chunkPosition(const ProductSide &side, bool left, int64_t number);
  Kept prepare(const ProductSide &side, bool left);
  Emitter::Values load(const ProductSide &side, const Kept &kept, mlir::ValueRange position);
  void store(const ProductSide &side, bool left, mlir::ValueRange loaded, mlir::Value panels);
  Emitter::Values fragment(mlir::Value panels, int64_t each, int64_t threads);
  Emitter::Values multiply(mlir::Value panels, mlir::ValueRange sums);
  mlir::Value rounded(mlir::Value element);
  void stage(mlir::ValueRange sums, int64_t firstRow, int64_t rows);

  // Tensor cores (TensorProduct.cpp): a warp has a part of the tile, in pieces of 16 x 8.
  bool isTensor() const { return kernel.precision == Precision::tensor; }
  int64_t warpColumns() const { return std::min<int64_t>(tile.columns, 32); }
  int64_t warpRows() const { return 32 * count() / warpColumns(); }
  void divideAmongWarps();
  Emitter::Values multiplyPieces(mlir::Value panels, mlir::ValueRange sums);
  void stagePieces(mlir::ValueRange sums, int64_t firstRow, int64_t rows);
};

// `count` elements at an address on their boundary, as f32 where they are of 16 bits.
mlir::Value loadChunk(Emitter &emit, mlir::Type element, mlir::Value address, int64_t count);
void storeChunk(Emitter &emit, mlir::ValueRange values, mlir::Value address);

// `value` where it is there, else 0.
mlir::Value orZero(Emitter &emit, mlir::Value there, mlir::Value value);
// Elements of a load of an operand of the kernel that is read in runs of so many.
int64_t chunkOf(mlir::Value operand, int64_t run);

// Sides that are matrices in memory: `matrix` is an argument of the kernel. A position is k, an i64.
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
