// SPDX-License-Identifier: Apache-2.0
//
// The register tile of a convolution: rows x vectors of 16 columns of
//
//     sums[row, n] += sum over k of a[rowOffset(row) + table[k]] * b[k, n]
//
// or, lane by lane, of a[rowOffset(row) + table[k] + n] * b[k, n]: one FMA chain over k an element. A step of k may
// have several taps, next to each other in the chain: elements of a at constant distances, each with a row of b of its
// own. What adjacent rows share of them is loaded once. Row offsets are constants of the code, so that a tile needs
// one address whatever its rows; offsets over k are a table of i32.
#ifndef COMPILER_CODEGEN_CPU_OFFSETS_H
#define COMPILER_CODEGEN_CPU_OFFSETS_H

#include "compiler/codegen/common/Kernel.h"
#include "compiler/codegen/cpu/Tile.h"

namespace mtc {

// What one tile works on. `a` and `table` may point into the middle; `stride` is floats between the rows of b (i64) of
// one step and the next, or a table of where they lie (pointer), `depth` the number of steps (i64), perhaps none.
// Chains start at +0 where `fresh` (i1) holds, else at what sums holds.
struct TileOperands {
  mlir::Value a, table, b, stride, depth, sums, fresh; // sums: rows of the panel's width
};

// `masked`: b has the panel's columns only, nothing may be read past them.
struct TileForm {
  bool masked, lanewise;
  bool scattered = false;                // `stride` is a table
  llvm::SmallVector<int64_t> taps = {0}; // of a step, ascending; rows of b follow each other, a panel's width apart
};
void emitOffsetTile(Emitter &emit, llvm::ArrayRef<int64_t> rowOffsets, Panel panel, TileForm form,
                    const TileOperands &operands);

// Rows of a tile for this many vectors and taps of a step.
int64_t offsetTileRows(const VectorUnit &unit, int64_t vectors, int64_t taps = 1);

// `count` rows in as few tiles of at most `most` rows as there can be, of two heights that differ by one: first row and
// height of each.
llvm::SmallVector<std::pair<int64_t, int64_t>> cutEvenly(int64_t count, int64_t most);

// An error unless every offset within a sample fits the tables' 32 bits.
mlir::LogicalResult checkOffsets(const Kernel &kernel);
// A table of i32 in the object.
mlir::Value emitTable(Emitter &emit, llvm::ArrayRef<int64_t> values);
// An i32 of a table, as i64.
mlir::Value loadTable(Emitter &emit, mlir::Value table, mlir::Value index);

// Calls `body` for each panel of `columns` columns, at most `vectors` wide: whole panels in a loop, then the last.
void forColumnPanels(Emitter &emit, int64_t columns, int64_t vectors,
                     llvm::function_ref<void(mlir::Value column, Panel panel)> body);

} // namespace mtc

#endif
