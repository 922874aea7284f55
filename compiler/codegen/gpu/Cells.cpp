// SPDX-License-Identifier: Apache-2.0
//
// The gradient of a max pool, computed by cells of its images. The windows that overlap a cell share their taps: a
// thread loads each tap once, and compares taps without branches.
#include "compiler/codegen/common/Rules.h"
#include "compiler/codegen/gpu/Elements.h"
#include "compiler/codegen/gpu/Sizes.h"
#include <limits>

using namespace mlir;
using namespace mtc;

namespace {
// An axis of the images. A cell has `stride` pixels along the axis and begins at a multiple of the stride, counted from
// the start of the padding. So all cells overlap the same number of windows, at the same taps.
struct Axis {
  mt::Window window;
  int64_t windows;      // windows that overlap a cell
  int64_t own, taps;    // number of taps from the first window's first tap to the cell's own pixels, and to the end
  int64_t first, count; // range of cells
  explicit Axis(const mt::Window &window)
      : window(window), windows((window.taps - 1) / window.stride + 1), own((windows - 1) * window.stride),
        taps(own + std::max(window.taps, window.stride)), first(window.low / window.stride),
        count((window.inputs - 1 + window.low) / window.stride + 1 - first) {}
};
// The index (i32) of a tap or a window on an axis, clamped to the valid range.
struct Clamped {
  Value index, exists; // whether the unclamped index is valid; null: for all cells
};
struct Indices {
  SmallVector<Clamped> taps, windows;
};
// Data of a cell in a thread, with elementsPerThread channels of each tap.
struct Cell {
  Axis rows, columns;
  Indices inRows, inColumns;
  Value channel;
  SmallVector<Emitter::Values> taps = {}, sums = {};
  bool isPadded() const { return !areTapsInside(rows.window) || !areTapsInside(columns.window); }
};
} // namespace

// Indices have 32 bits, which halves the number of instructions; images are small enough.
static Value shortInteger(Emitter &emit, int64_t value) {
  return arith::ConstantOp::create(emit, emit.getI32IntegerAttr(static_cast<int32_t>(value)));
}
static Value scaled(Emitter &emit, Value value, int64_t scale, Value offset) {
  return emit.add(emit.mul(value, shortInteger(emit, scale)), offset);
}
static Value indexOf(Emitter &emit, const Clamped &row, const Clamped &column, Value channel, Value images) {
  ArrayRef<int64_t> shape = innerShape(images);
  Value inRow = scaled(emit, row.index, shape[1] * shape[2], channel);
  Value index = emit.add(inRow, emit.mul(column.index, shortInteger(emit, shape[2])));
  return arith::ExtUIOp::create(emit, emit.getI64Type(), index);
}

static Value allOf(Emitter &emit, Value a, Value b) { return a && b ? both(emit, a, b) : a ? a : b; }

// The index cell * scale + offset, clamped to [0, size).
static Clamped clampedOf(Emitter &emit, const Axis &axis, Value cell, int64_t scale, int64_t offset, int64_t size) {
  Value at = scaled(emit, cell, scale, shortInteger(emit, offset));
  Clamped clamped{at, {}};
  if (offset < 0) {
    clamped.exists = emit.less(shortInteger(emit, -1), at);
    clamped.index = emit.max(clamped.index, shortInteger(emit, 0));
  }
  if ((axis.count - 1) * scale + offset >= size) {
    clamped.exists = allOf(emit, clamped.exists, emit.less(at, shortInteger(emit, size)));
    clamped.index = emit.min(clamped.index, shortInteger(emit, size - 1));
  }
  return clamped;
}

static Indices indicesOf(Emitter &emit, const Axis &axis, Value cell) {
  const mt::Window &window = axis.window;
  Indices indices;
  int64_t firstWindow = axis.first - (axis.windows - 1);
  for (int64_t i = 0; i < axis.windows; ++i)
    indices.windows.push_back(clampedOf(emit, axis, cell, 1, firstWindow + i, window.outputs));
  int64_t firstTap = firstWindow * window.stride - window.low;
  for (int64_t i = 0; i < axis.taps; ++i)
    indices.taps.push_back(clampedOf(emit, axis, cell, window.stride, firstTap + i, window.inputs));
  return indices;
}

mt::WindowGradientOpInterface mtc::gradientByCells(plan::KernelOp op) {
  if (op.getKind() != mt::KernelKind::rows)
    return {};
  mt::WindowGradientOpInterface found;
  for (Operation &inner : op.getBody().front().without_terminator()) {
    if (reachOf(&inner) == Reach::element)
      continue;
    if (found || !isa<mt::WindowGradientOpInterface>(inner))
      return {};
    found = cast<mt::WindowGradientOpInterface>(inner);
  }
  if (!found || !found.getInput())
    return {};
  mt::Pooling pool = found.getPooling();
  bool isSmall = Axis(pool.rows).taps * Axis(pool.columns).taps <= maxCellTaps &&
                 innerCount(found->getResult(0)) <= std::numeric_limits<int32_t>::max();
  bool isWhole = llvm::all_of(op.getBody().front().getTerminator()->getOperands(),
                              [&](Value yield) { return innerCount(yield) == innerCount(found->getResult(0)); });
  return isSmall && isWhole && pool.channels % elementsPerThread == 0 ? found : nullptr;
}

SmallVector<int64_t> mtc::cellsOf(const mt::Pooling &pool) {
  return {Axis(pool.rows).count, Axis(pool.columns).count, pool.channels};
}

static Value constantOf(Emitter &emit, float value) {
  return arith::ConstantOp::create(emit, emit.getF32FloatAttr(value));
}

// For each tap of a window, in order, whether the window's gradient goes to it: it is larger than all taps before, and
// no tap after it is larger. `isFirst` states whether a tap is the first valid one; null: it is not. Invalid taps are
// -inf.
static Emitter::Values winnersOf(Emitter &emit, ValueRange taps, ArrayRef<Value> isFirst) {
  auto compare = [&](arith::CmpFPredicate predicate, Value a, Value b) {
    return arith::CmpFOp::create(emit, predicate, a, b).getResult();
  };
  // The sign of a zero does not matter: both zeros compare equal.
  auto most = [&](Value a, Value b) { return b ? arith::MaximumFOp::create(emit, a, b).getResult() : a; };
  Emitter::Values winners{isFirst[0]};
  Value before = taps[0];
  for (size_t i = 1; i < taps.size(); ++i) {
    Value wins = beats(emit, taps[i], before);
    winners.push_back(isFirst[i] ? arith::OrIOp::create(emit, isFirst[i], wins).getResult() : wins);
    before = most(before, taps[i]);
  }
  Value after;
  for (size_t i = taps.size(); i-- > 0; after = most(taps[i], after))
    if (after) {
      Value isNaN = compare(arith::CmpFPredicate::UNO, taps[i], taps[i]);
      Value keeps = arith::OrIOp::create(emit, compare(arith::CmpFPredicate::OLE, after, taps[i]), isNaN);
      winners[i] = both(emit, winners[i], keeps);
    }
  return winners;
}

// Adds the gradients of a window, for several channels, to the sums of the taps to which they go.
static void addWindow(Emitter &emit, Cell &cell, int64_t row, int64_t column, ValueRange shares) {
  int64_t top = row * cell.rows.window.stride, left = column * cell.columns.window.stride;
  SmallVector<int64_t> numbers;
  SmallVector<Value> isFirst;
  for (int64_t kh = 0; kh < cell.rows.window.taps; ++kh)
    for (int64_t kw = 0; kw < cell.columns.window.taps; ++kw) {
      Value first;
      if (numbers.empty())
        first = arith::ConstantOp::create(emit, emit.getBoolAttr(true));
      else if (cell.isPadded()) // whether the tap is the one nearest to the corner
        first = both(emit, emit.equal(cell.inRows.taps[top + kh].index, cell.inRows.taps[top].index),
                     emit.equal(cell.inColumns.taps[left + kw].index, cell.inColumns.taps[left].index));
      numbers.push_back((top + kh) * cell.columns.taps + left + kw);
      isFirst.push_back(first);
    }
  Value zero = emit.zeros(emit.getF32Type());
  for (auto [lane, share] : llvm::enumerate(shares)) {
    Emitter::Values elements;
    for (int64_t tap : numbers)
      elements.push_back(cell.taps[tap][lane]);
    Emitter::Values winners = winnersOf(emit, elements, isFirst);
    for (auto [tap, wins] : llvm::zip_equal(numbers, winners)) {
      Value added = arith::SelectOp::create(emit, wins, share, zero);
      cell.sums[tap][lane] = arith::AddFOp::create(emit, cell.sums[tap][lane], added);
    }
  }
}

// The elements of channels, or `otherwise` if row or column is invalid.
static Emitter::Values existing(Emitter &emit, const Clamped &row, const Clamped &column, Emitter::Values elements,
                                Value otherwise) {
  if (Value exists = allOf(emit, row.exists, column.exists))
    for (Value &element : elements)
      element = arith::SelectOp::create(emit, exists, element, otherwise);
  return elements;
}

void BlockElements::storeCell(mt::WindowGradientOpInterface op, ArrayRef<Value> yields, ArrayRef<Value> results,
                              Value number) {
  mt::Pooling pool = op.getPooling();
  Axis rows(pool.rows), columns(pool.columns);
  Emitter::Values at = coordinates(emit, number, cellsOf(pool));
  for (Value &index : at)
    index = arith::TruncIOp::create(emit, emit.getI32Type(), index);
  Cell cell{rows, columns, indicesOf(emit, rows, at[0]), indicesOf(emit, columns, at[1]), at[2]};
  auto load = [&](Value value, const Clamped &row, const Clamped &column) {
    return adjacent(value, indexOf(emit, row, column, cell.channel, value), elementsPerThread);
  };
  Value zero = emit.zeros(emit.getF32Type()), none = constantOf(emit, -std::numeric_limits<float>::infinity());
  for (const Clamped &row : cell.inRows.taps)
    for (const Clamped &column : cell.inColumns.taps) {
      Emitter::Values nearest = load(op.getInput(), row, column);
      cell.taps.push_back(cell.isPadded() ? existing(emit, row, column, nearest, none) : nearest);
      cell.sums.push_back(Emitter::Values(elementsPerThread, zero));
    }
  for (auto [i, row] : llvm::enumerate(cell.inRows.windows))
    for (auto [j, column] : llvm::enumerate(cell.inColumns.windows))
      addWindow(emit, cell, i, j, existing(emit, row, column, load(op.getGradient(), row, column), zero));

  Value images = op->getResult(0);
  for (int64_t i = rows.own; i < rows.own + pool.rows.stride; ++i)
    for (int64_t j = columns.own; j < columns.own + pool.columns.stride; ++j) {
      const Clamped &row = cell.inRows.taps[i], &column = cell.inColumns.taps[j];
      auto store = [&] {
        Chunk chunk = chunkAt(indexOf(emit, row, column, cell.channel, images), elementsPerThread);
        chunk.elements[images] = cell.sums[i * columns.taps + j];
        storeYields(yields, results, chunk);
      };
      if (Value exists = allOf(emit, row.exists, column.exists))
        emit.when(exists, store);
      else
        store();
    }
  // Taps that may be invalid take a few more registers, which ptxas can avoid.
  if (cell.isPadded())
    kernel.residentBlocks = residentThreads / elementwiseThreads;
}
