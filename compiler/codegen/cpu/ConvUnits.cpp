// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cpu/ConvUnits.h"
#include "compiler/codegen/cpu/Offsets.h"

using namespace mlir;
using namespace mtc;

// Number of floats of the source that a position reads per row of taps.
static int64_t lineFloats(const Product &product) { return product.residues.front().tapColumns() * product.tapDepth(); }

// Whether vectors along a row of taps have so many more used elements than vectors along the filters that the
// transposed product is faster. A single vector shares no element of the other operand.
bool mtc::isTransposed(const Product &product) {
  const Residue &residue = product.residues.front();
  int64_t along = residue.tapColumns();
  if (product.groups > 1 || product.depthwise || residue.taps[along - 1].column - residue.taps[0].column != along - 1)
    return false;
  auto use = [](int64_t columns) {
    return columns * (columns <= lanes ? 0.6 : 1.0) / (ceilDiv(columns, lanes) * lanes);
  };
  return use(lineFloats(product)) > 1.15 * use(product.result.groupChannels);
}

// Number of columns of the product.
int64_t mtc::columnsOf(const Product &product) {
  return isTransposed(product) ? lineFloats(product) : product.result.groupChannels;
}

std::pair<int64_t, int64_t> mtc::insideRange(int64_t tap, int64_t step, int64_t inputs, int64_t positions) {
  auto reach = [&](int64_t distance) { return distance <= 0 ? 0 : std::min(ceilDiv(distance, step), positions); };
  return {reach(-tap), reach(inputs - tap)};
}

bool mtc::isDirect(const Product &product) {
  return !product.element && product.needsHaloBuffer(product.residues.front()) && !product.depthwise &&
         !isTransposed(product) && product.tapDepth() >= unitRows;
}

// The rows of each tap, for units with one tap.
static std::vector<RowUnit> directUnits(const Product &product) {
  const Residue &residue = product.residues.front();
  const Image &image = product.source;
  std::vector<RowUnit> units;
  for (auto [index, tap] : llvm::enumerate(residue.taps))
    for (auto [first, rows] : cutEvenly(product.tapDepth(), unitRows)) {
      RowUnit unit{static_cast<int64_t>(index) * product.tapDepth() + first,
                   (tap.row * image.columns + tap.column) * image.channels + first,
                   llvm::to_vector(llvm::seq<int64_t>(rows))};
      unit.rows = insideRange(tap.row, residue.rowStep, image.rows, residue.rows);
      unit.tapColumn = static_cast<int64_t>(index) % residue.tapColumns();
      units.push_back(unit);
    }
  return units;
}

// The filters, for each row of taps.
static std::vector<RowUnit> transposedUnits(const Product &product) {
  const Residue &residue = product.residues.front();
  int64_t filters = product.result.channels, count = residue.taps.size(), along = residue.tapColumns();
  std::vector<RowUnit> units;
  for (int64_t tap = 0; tap < count; tap += along)
    for (auto [first, rows] : cutEvenly(filters, unitRows)) {
      int64_t line =
          (residue.taps[tap].row - residue.lowRow) * product.rowStride(residue) * product.pixelStride(residue);
      units.push_back({tap / along * filters + first, first, llvm::to_vector(llvm::seq<int64_t>(rows)), line});
    }
  return units;
}

// Divides the rows of the result into units of adjacent rows: runs of equal steps are divided evenly, short runs are
// joined.
std::vector<RowUnit> mtc::unitsOf(const Product &product) {
  if (isTransposed(product))
    return transposedUnits(product);
  if (isDirect(product))
    return directUnits(product);
  const Residue &residue = product.residues.front();
  int64_t pixel = product.pixelStride(residue), line = product.rowStride(residue);
  SmallVector<int64_t> offsets;
  for (const Tap &tap : residue.taps)
    for (int64_t c = 0; c < product.tapDepth(); ++c)
      offsets.push_back(((tap.row - residue.lowRow) * line + tap.column - residue.lowColumn) * pixel + c);
  std::vector<RowUnit> units;
  int64_t count = offsets.size(), run = 1;
  while (run < count && offsets[run] == offsets[run - 1] + 1)
    ++run;
  int64_t step = run >= unitRows ? run : unitRows / run * run;
  for (int64_t first = 0; first < count; first += step) {
    int64_t rows = std::min(step, count - first), parts = ceilDiv(rows, unitRows);
    for (int64_t part = 0; part < parts; ++part) {
      int64_t from = first + rows * part / parts, to = first + rows * (part + 1) / parts;
      RowUnit unit{from, offsets[from], {}};
      for (int64_t row = from; row < to; ++row)
        unit.offsets.push_back(offsets[row] - offsets[from]);
      units.push_back(unit);
    }
  }
  return units;
}
