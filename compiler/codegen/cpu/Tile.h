// SPDX-License-Identifier: Apache-2.0
//
// The register tile of all matrix products, rows x vectors of 16 columns:
//
//     C[row, n] += sum over k of A[row, k] * B[k, n]
//
// Each element is one FMA chain over k. Elements of A are broadcast, B is a packed panel (depth x width, rows of
// `width` floats), C a panel of sums in memory. Tiles are internal functions that all kernels of an object share. An
// element of A and of B is a float, or a pair of terms (Terms.h).
#ifndef COMPILER_CODEGEN_CPU_TILE_H
#define COMPILER_CODEGEN_CPU_TILE_H

#include "compiler/codegen/cpu/Terms.h"

namespace mtc {

// Number of columns of a panel of products in the grid, the same for all targets.
constexpr int64_t panelColumns = 64;
// Number of floats of a packed panel of B and of a panel of sums: 32 KiB. An L1 cache of 48 KiB holds the packed panel
// and the other data of a tile.
constexpr int64_t panelFloats = 8192;

// Layout of A: element (i, k) is at a[i * stride + k] (rows), or at a[k * stride + i] (columns, in which k is a sample
// of a weight gradient). Or A is packed tile by tile by emitPackLeft: element (i, k) of a tile of `height` rows, the
// first of which is row r, is at a[r * stride + k * height + i] (tiles).
enum class Layout { rows, columns, tiles };

struct Panel {
  int64_t vectors; // 1 to 4
  int64_t last;    // columns of the last vector, 1 to 16
  int64_t width() const { return vectors * lanes; }
  // Rows of a packed panel, and of a panel of sums. A multiple of a vector, because a transposed side is packed in full
  // vectors.
  int64_t depth() const { return panelFloats / width() / lanes * lanes; }
};

// Calls `body` for each panel, of the width of the target's tiles, of columns [from, to) out of `columns` (multiples of
// panelColumns; `to` may be rounded up). Code is emitted once for full panels and once for the last panel.
void forPanels(Emitter &emit, int64_t columns, mlir::Value from, mlir::Value to,
               llvm::function_ref<void(mlir::Value column, Panel panel)> body);

// Divides `rows` rows (an i64, not 0) into the smallest number of tiles of at most `most` rows, whose heights differ by
// at most one. Calls `tiles` for each height with the first row and the number of tiles, which are adjacent.
void forTiles(Emitter &emit, int64_t most, mlir::Value rows,
              llvm::function_ref<void(mlir::Value row, mlir::Value count, int64_t height)> tiles);

// The lower half of a vector.
mlir::Value lowerHalf(Emitter &emit, mlir::Value vector);

// One step of a tile in registers: sums + column of a * row of b. The elements of the column have addresses of their
// own, or are contiguous. `half`: the last vector of b and of each row of sums is only its lower half.
Emitter::Values emitOuterProduct(Emitter &emit, Terms terms, llvm::ArrayRef<mlir::Value> a, mlir::Value b,
                                 int64_t vectors, mlir::ValueRange sums, bool half = false);
Emitter::Values emitOuterProduct(Emitter &emit, Terms terms, mlir::Value a, mlir::Value b, int64_t rows,
                                 int64_t vectors, mlir::ValueRange sums, bool half = false);

// Whether a product is added to existing sums, or to 0; exact: to 0, and columns that the panel does not have are not
// written.
enum class Sums { there, fresh, exact };

// sums[rows x width] += A[rows x depth] * packed. `rows` and `depth` are i64 values; `depth` and `stride` are in floats
// or pairs. Sums of columns that the panel does not have may stay as they were. `step`: distance of the rows of exact
// sums, in floats; null: the panel's width.
void emitProduct(Emitter &emit, Layout layout, Panel panel, mlir::Value a, mlir::Value stride, mlir::Value packed,
                 mlir::Value depth, mlir::Value sums, mlir::Value rows, Sums start = Sums::there,
                 Terms terms = Terms::single, mlir::Value step = {});

// Whether packing the left side makes products faster: a tile of a CPU with few registers is so narrow that it reads an
// element of the left side often.
inline bool packsLeft(const VectorUnit &unit) { return !unit.isWide(); }
// Packs `rows` rows of a left side (rows or columns; floats) with `depth` columns for tiles, to rows of `toStride`
// floats, at least packedLeftStride(depth). Writes packedLeftFloats(rows, toStride) floats at most.
void emitPackLeft(Emitter &emit, Layout layout, mlir::Value a, int64_t stride, mlir::Value depth, mlir::Value to,
                  int64_t toStride, mlir::Value rows);
inline int64_t packedLeftStride(int64_t depth) { return llvm::alignTo(depth, 8) + 8; }
inline int64_t packedLeftFloats(int64_t rows, int64_t toStride) { return rows * toStride + lanes; }

// packed = rows [0, depth) of b (row major, with a stride of `stride` elements; `element`: type of b, null: f32),
// padded with zeros. The packed rows are unitsOf(terms, depth).
void emitPack(Emitter &emit, Panel panel, mlir::Value b, int64_t stride, mlir::Value depth, mlir::Value packed,
              mlir::Type element = {}, Terms terms = Terms::single);

// Packs a matrix that is stored transposed: column j of the panel is at b + j * stride. Its rows are written with a
// stride of `toStride` rows of the packed panel, and the packed rows are rounded up to full vectors. If terms are
// swapped, the two rows of a pair are adjacent, and pairs have this stride, in pairs.
void emitPackTransposed(Emitter &emit, Panel panel, mlir::Value b, int64_t stride, mlir::Value depth,
                        mlir::Value packed, int64_t toStride = 1, mlir::Type element = {}, Terms terms = Terms::single);

// to = rows [0, rows) of `columns` elements each, as f32; `stride` and `toStride` are the strides of the rows, in
// elements and in floats. With other terms than single, the terms of a left side, in full vectors.
void emitExtend(Emitter &emit, mlir::Type element, mlir::Value from, int64_t stride, mlir::Value to, int64_t toStride,
                mlir::Value rows, mlir::Value columns, Terms terms = Terms::single);

// Transposes a square in registers: as many vectors as each has elements, a power of two.
void transposeInRegisters(Emitter &emit, Emitter::Values &vectors);

// Calls each(index in floats) for each vector of `rows` rows of a panel.
void forVectors(Emitter &emit, Panel panel, mlir::Value rows, llvm::function_ref<void(mlir::Value index)> each);

} // namespace mtc

#endif
