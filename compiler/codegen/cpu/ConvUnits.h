// SPDX-License-Identifier: Apache-2.0
//
// Division of the kernel gradient of a convolution into units: (taps x channels) x filters, or transposed.
#ifndef COMPILER_CODEGEN_CPU_CONVUNITS_H
#define COMPILER_CODEGEN_CPU_CONVUNITS_H

#include "compiler/codegen/cpu/ConvProduct.h"

namespace mtc {

// Largest number of rows of a unit, the tile of the grid. A run of equal steps may have more rows.
constexpr int64_t unitRows = 12;

// Rows (kh, kw, c) of the result, or (kh, filter) if transposed, that one tile computes, with the offset in the source
// that each row reads, relative to the first row.
struct RowUnit {
  int64_t first, start; // first row, and its offset
  llvm::SmallVector<int64_t> offsets;
  int64_t line = 0;                          // transposed: offset of the row of taps in the source
  std::pair<int64_t, int64_t> rows = {0, 0}; // direct: the rows of positions whose tap is inside the image
  int64_t tapColumn = 0;                     // direct: index of the tap in its row
};

// Whether the product is computed transposed: for each row of taps (filters, positions) times (positions, taps of the
// row x channels).
bool isTransposed(const Product &product);
// Whether each unit has one tap, and reads the source directly instead of a halo buffer.
bool isDirect(const Product &product);
// Number of columns of the product.
int64_t columnsOf(const Product &product);
std::vector<RowUnit> unitsOf(const Product &product);

// Range of the positions p in [0, positions) whose input at a tap, p * step + tap, is in [0, inputs).
std::pair<int64_t, int64_t> insideRange(int64_t tap, int64_t step, int64_t inputs, int64_t positions);

} // namespace mtc

#endif
