// SPDX-License-Identifier: Apache-2.0
//
// The one mechanism behind every product: a register tile, rows x vectors of 16 columns,
//
//     C[row, n] += sum over k of A[row, k] * B[k, n]
//
// one FMA chain over k an element. A is broadcast, B is a packed panel (depth x width, rows of `width` floats), C a
// panel of sums in memory. Tiles are internal functions, shared by all kernels of an object.
#ifndef COMPILER_CODEGEN_CPU_TILE_H
#define COMPILER_CODEGEN_CPU_TILE_H

#include "compiler/codegen/common/Emitter.h"

namespace mtc {

// Columns of a panel of products; all targets count tiles in these.
constexpr int64_t panelColumns = 64;
// Floats of a packed panel of B and of a panel of sums: 32 KiB. A first cache of 48 KiB holds the packed panel and what
// a tile reads beside it.
constexpr int64_t panelFloats = 8192;

// How A lies: row i, position k at a[i * stride + k] (rows), or at a[k * stride + i] (columns: a weight gradient's
// samples are k).
enum class Layout { rows, columns };

struct Panel {
  int64_t vectors; // 1 to 4
  int64_t last;    // columns of the last vector, 1 to 16
  int64_t width() const { return vectors * lanes; }
  // Of a packed panel, and rows of a panel of sums. Whole vectors: a transposed side is packed in these.
  int64_t depth() const { return panelFloats / width() / lanes * lanes; }
};

// Calls `body` for each panel of `columns` columns that the machine's tiles cut from columns [from, to) (multiples of
// panelColumns, `to` at most rounded up). Code is written once for whole panels and once for the last.
void forPanels(Emitter &emit, int64_t columns, mlir::Value from, mlir::Value to,
               llvm::function_ref<void(mlir::Value column, Panel panel)> body);

// Cuts `rows` rows (an i64, not 0) in as few tiles of at most `most` rows as there can be, of two heights that differ
// by one. `tiles` is called for each height with the first row and the number of tiles, which follow each other.
void forTiles(Emitter &emit, int64_t most, mlir::Value rows,
              llvm::function_ref<void(mlir::Value row, mlir::Value count, int64_t height)> tiles);

// One step of a tile in registers: sums + column of a * row of b. The column's elements lie at addresses of their own,
// or next to each other.
Emitter::Values emitOuterProduct(Emitter &emit, llvm::ArrayRef<mlir::Value> a, mlir::Value b, int64_t vectors,
                                 mlir::ValueRange sums);
Emitter::Values emitOuterProduct(Emitter &emit, mlir::Value a, mlir::Value b, int64_t rows, int64_t vectors,
                                 mlir::ValueRange sums);

// Whether a product is added to sums that are there, or to 0.
enum class Sums { there, fresh };

// sums[rows x width] += A[rows x depth] * packed. `rows` and `depth` are i64 values.
void emitProduct(Emitter &emit, Layout layout, Panel panel, mlir::Value a, mlir::Value stride, mlir::Value packed,
                 mlir::Value depth, mlir::Value sums, mlir::Value rows, Sums start = Sums::there);

// packed = rows [0, depth) of b (row major, `stride` elements a row; of `element`, null: f32), padded with zeros.
void emitPack(Emitter &emit, Panel panel, mlir::Value b, int64_t stride, mlir::Value depth, mlir::Value packed,
              mlir::Type element = {});

// The same of a matrix that lies transposed: column j of the panel at b + j * stride. Its rows are written `apart` rows
// of the packed panel from each other, and depth rounded up to whole vectors of them.
void emitPackTransposed(Emitter &emit, Panel panel, mlir::Value b, int64_t stride, mlir::Value depth,
                        mlir::Value packed, int64_t apart = 1, mlir::Type element = {});

// to = rows [0, rows) of `columns` elements each, as f32; `stride` and `apart` elements from row to row.
void emitExtend(Emitter &emit, mlir::Type element, mlir::Value from, int64_t stride, mlir::Value to, int64_t apart,
                mlir::Value rows, mlir::Value columns);

// Transposes 16 vectors of 16 lanes in registers.
void transposeInRegisters(Emitter &emit, Emitter::Values &vectors);

// For each of `count` vectors of a panel: to = each(index in floats).
void forVectors(Emitter &emit, Panel panel, mlir::Value rows, llvm::function_ref<void(mlir::Value index)> each);

} // namespace mtc

#endif
