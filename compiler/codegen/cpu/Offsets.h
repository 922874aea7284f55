// SPDX-License-Identifier: Apache-2.0
//
// The register tile of a convolution, rows x vectors of 16 columns:
//
//     sums[row, n] += sum over k of a[rowOffset(row) + table[k]] * b[k, n]
//
// or, element by element, of a[rowOffset(row) + table[k] + n] * b[k, n]. Each element is one FMA chain over k. A step
// of k may have several taps that are adjacent in the chain: elements of a at constant distances, each with a row of b
// of its own. An element that adjacent rows share is loaded once. Row offsets are constants of the code, so that a tile
// needs one address for any number of rows. Offsets over k are a table of i32.
#ifndef COMPILER_CODEGEN_CPU_OFFSETS_H
#define COMPILER_CODEGEN_CPU_OFFSETS_H

#include "compiler/codegen/common/Kernel.h"
#include "compiler/codegen/cpu/Tile.h"

namespace mtc {

// Operands of one tile. `a` and `table` may point into the middle of their data. `stride` is the stride of the rows of
// b between steps, in floats (i64), or a table of their offsets (pointer). `depth` is the number of steps (i64) and may
// be 0. Chains start at +0 if `fresh` (i1) is true, else at the values in `sums`.
struct TileOperands {
  mlir::Value a, table, b, stride, depth, sums, fresh; // sums: rows of the panel's width
};

// `masked`: b has only the columns of the panel, and reads must not exceed them.
struct TileForm {
  bool masked, lanewise;
  bool scattered = false;                // `stride` is a table
  llvm::SmallVector<int64_t> taps = {0}; // of a step, ascending; their rows of b have the panel's width as stride
  Terms terms = Terms::single;
};
void emitOffsetTile(Emitter &emit, llvm::ArrayRef<int64_t> rowOffsets, Panel panel, TileForm form,
                    const TileOperands &operands);

// Number of rows of a tile for this panel, and taps per step.
int64_t offsetTileRows(const VectorUnit &unit, Panel panel, bool lanewise, int64_t taps = 1);

// Whether a tile computes only the lower half of the last vector of a panel, which has no more columns: where registers
// hold half a vector or less.
bool hasHalfVector(const VectorUnit &unit, Panel panel, bool lanewise);

// Divides `count` rows into the smallest number of tiles of at most `most` rows, whose heights differ by at most one.
// Returns the first row and the height of each tile.
llvm::SmallVector<std::pair<int64_t, int64_t>> cutEvenly(int64_t count, int64_t most);

// Fails unless every offset within a sample fits into 32 bits.
mlir::LogicalResult checkOffsets(const Kernel &kernel);
// A table of i32 in the object.
mlir::Value emitTable(Emitter &emit, llvm::ArrayRef<int64_t> values);
// An i32 of a table, extended to i64.
mlir::Value loadTable(Emitter &emit, mlir::Value table, mlir::Value index);

// Calls `body` for each panel of `columns` columns, at most `vectors` wide: full panels in a loop, then the last panel.
void forColumnPanels(Emitter &emit, int64_t columns, int64_t vectors,
                     llvm::function_ref<void(mlir::Value column, Panel panel)> body);

} // namespace mtc

#endif
