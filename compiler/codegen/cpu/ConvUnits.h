// SPDX-License-Identifier: Apache-2.0
//
// How the gradient of a convolution to its kernel is cut: (taps x channels) x filters, or transposed.
#ifndef COMPILER_CODEGEN_CPU_CONVUNITS_H
#define COMPILER_CODEGEN_CPU_CONVUNITS_H

#include "compiler/codegen/cpu/ConvProduct.h"

namespace mtc {

// Most rows of a unit, the tile of the grid, but for runs of steps that are longer.
constexpr int64_t unitRows = 12;

// Rows (kh, kw, c), transposed (kh, filter), of the result that one tile computes: where each reads, relative to the
// first.
struct RowUnit {
  int64_t first, start; // row; its offset
  llvm::SmallVector<int64_t> offsets;
  int64_t line = 0;                          // transposed: offset of the row of taps in the source
  std::pair<int64_t, int64_t> rows = {0, 0}; // direct: of positions, those whose tap lies in the image
  int64_t tapColumn = 0;                     // direct: the tap's index in its row
};

// Whether the product is computed transposed: for each row of taps (filters, positions) times (positions, taps of the
// row x channels).
bool isTransposed(const Product &product);
// Whether each unit has one tap, and reads the source itself where a halo buffer would have a halo.
bool isDirect(const Product &product);
// Columns of the product.
int64_t columnsOf(const Product &product);
std::vector<RowUnit> unitsOf(const Product &product);

// Of `positions`, `step` apart, those that read within `inputs` at a tap: first and end.
std::pair<int64_t, int64_t> insideRange(int64_t tap, int64_t step, int64_t inputs, int64_t positions);

} // namespace mtc

#endif
