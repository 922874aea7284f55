// SPDX-License-Identifier: Apache-2.0
//
// (rows x K) . (K x N), then element-wise operations on the result; a sample may have several rows. The tiles of the
// grid are numbered along the columns of the tile grid, so that a thread gets few panels of many rows: each panel of
// the right side is packed once, and the work is even for any number of rows.
#include "compiler/codegen/common/Kernel.h"
#include "compiler/codegen/cpu/Kernels.h"
#include "compiler/codegen/cpu/Tile.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/KernelKinds.h"

using namespace mlir;
using namespace mtc;

// Largest number of floats of a right side that is packed as a whole: 256 KiB, or 512 KiB if the left side is
// converted for each of them. Largest number of floats of the rows of the left side that pass all panels: 128 KiB of
// the L2 cache.
static constexpr int64_t maxPackedFloats = 1 << 16, maxPackedForConverted = 1 << 17, maxLeftFloats = 1 << 15;
// The same if the left side is packed too, once for each group of columns: a right side of 2 MiB, which passes the
// caches a part of the depth at a time, with at most 20 KiB for 16 columns.
static constexpr int64_t packedGroupColumns = 1024, maxPackedInParts = 1 << 19, maxPartDepth = 320;
// Smallest number of columns for which the left side is packed, and of products that are too deep for the other way.
static constexpr int64_t minPackedColumns = 512, minPackedColumnsDeep = 256;
// Rows of a block are a multiple of this number, so that it has full tiles, and at most `wholeRows`.
static constexpr int64_t rowStep = 24, wholeRows = 120;

namespace {
class MatmulEmitter {
public:
  explicit MatmulEmitter(Kernel &kernel) : kernel(kernel), emit(kernel.emit) {}
  LogicalResult run();

private:
  Kernel &kernel;
  Emitter &emit;
  mt::MatmulOp product;
  int64_t depth = 0, columns = 0;
  Terms terms = Terms::single;
  Type leftElement;
  bool transposed = false; // the right side is stored transposed
  Value right;             // the right side, from the first element of its part of a matrix on
  int64_t rightStride = 0; // stride of the matrix' rows, in elements
  SmallVector<Value> arguments, results;

  void findRight();
  void pack(Value column, Panel panel, Value k, Value part, Value packed);
  // Rows of the packed right side, rounded up to full vectors.
  int64_t paddedDepth() const { return llvm::alignTo(unitsOf(terms, depth), lanes); }
  int64_t packedFloats() const { return paddedDepth() * panelColumns; }
  int64_t mostPacked() const { return converts() ? maxPackedForConverted : maxPackedFloats; }
  // Whether the left side is packed for tiles: a block of rows, and a part of the depth, at a time.
  bool packsTiles() const {
    return packsLeft(emit.vectors) && packedFloats() <= maxPackedInParts &&
           columns >= (packedFloats() <= mostPacked() ? minPackedColumns : minPackedColumnsDeep);
  }
  bool packsAtOnce() const { return packsTiles() || packedFloats() <= mostPacked(); }
  // A left side of 16 bits is converted, a block of rows at a time, unless its terms lie in pairs.
  bool converts() const { return Emitter::isHalf(leftElement) && !(terms == Terms::pairs && depth % 2 == 0); }
  // Whether the kernel has the product as its only result.
  bool isResult() {
    return kernel.yields().size() == 1 && kernel.yields()[0] == product.getResult() &&
           elementOf(product.getResult()) == emit.realType();
  }
  // Columns of a group, and rows of a block.
  int64_t groupColumns() const;
  int64_t blockRows() const;
  void emitPanel(Value column, Panel panel, Value row, Value count, Value a, int64_t stride, Value packed);
  void emitPackedPanels(Value fromColumn, Value toColumn, Value row, Value count, Value left, int64_t stride,
                        llvm::function_ref<Value(Value column)> panelAt);
  void emitGroup(Value fromColumn, Value toColumn, Value from, Value to);
  void emitEpilogue(Value column, Panel panel, Value row, Value sums, Value count);
  Value loadElements(Value value, Value base, Value row, Value column, Value mask);
};
} // namespace

// 16 elements of an operand at (row, column), broadcast according to the operand's shape.
Value MatmulEmitter::loadElements(Value value, Value base, Value row, Value column, Value mask) {
  RankedTensorType type = tensorOf(value);
  Type element = type.getElementType();
  int64_t rank = type.getRank(), width = rank ? type.getDimSize(rank - 1) : 1;
  Value address = base;
  if (rank >= 2 && (isSplit(value) || linesOf(value) != 1))
    address = emit.address(address, element, emit.mul(row, width));
  if (width == 1)
    return emit.splat(emit.load(element, address));
  return emit.loadLanes(element, emit.address(address, element, column), mask);
}

void MatmulEmitter::emitEpilogue(Value column, Panel panel, Value row, Value sums, Value count) {
  Type f32 = emit.realType();
  emit.loop(emit.integer(0), count, 1, [&](Value i) {
    Value line = emit.address(sums, f32, emit.mul(i, panel.width())), here = emit.add(row, i);
    auto emitVector = [&](int64_t vector, Value mask) {
      Value at = emit.add(column, vector * lanes);
      VectorBody body(kernel, /*scalar=*/false, [&](Value value) -> Value {
        if (value == product.getResult())
          return emit.loadLanes(f32, emit.address(line, f32, vector * lanes));
        if (auto argument = dyn_cast<BlockArgument>(value))
          return loadElements(value, arguments[argument.getArgNumber()], here, at, mask);
        if (auto constant = value.getDefiningOp<mt::ConstantOp>())
          if (auto values = cast<DenseElementsAttr>(constant.getValue()); !values.isSplat())
            return loadElements(value, emit.global(values), here, at, mask);
        return Value();
      });
      SmallVector<Value> computed;
      for (Value yield : kernel.yields())
        computed.push_back(body.get(yield));
      for (auto [value, result, yield] : llvm::zip_equal(computed, results, kernel.yields())) {
        Type element = elementOf(yield);
        Value address = emit.address(emit.address(result, element, emit.mul(here, columns)), element, at);
        emit.storeLanes(element, value, address, mask);
      }
    };
    for (int64_t vector = 0; vector + 1 < panel.vectors; ++vector)
      emitVector(vector, Value());
    emit.tail(panel.last, [&](Value mask) { emitVector(panel.vectors - 1, mask); });
  });
}

int64_t MatmulEmitter::groupColumns() const {
  int64_t most = packsAtOnce() ? mostPacked() / packedFloats() : 1;
  if (packsTiles())
    most = std::min(maxPackedInParts / packedFloats(), packedGroupColumns / panelColumns);
  return std::min<int64_t>(most, llvm::divideCeil(columns, panelColumns)) * panelColumns;
}

int64_t MatmulEmitter::blockRows() const {
  if (!packsAtOnce() || packsTiles())
    return wholeRows;
  return std::clamp<int64_t>(maxLeftFloats / paddedDepth() / rowStep * rowStep, 2 * rowStep, wholeRows);
}

void MatmulEmitter::findRight() {
  Value matrix = product.getRhs();
  int64_t start = 0;
  if (mt::SliceOp slice = mt::slicedSide(product)) {
    matrix = slice.getOperand();
    start = slice.getStarts()[0] * tensorOf(matrix).getDimSize(1) + slice.getStarts()[1];
  }
  rightStride = tensorOf(matrix).getDimSize(1);
  right = arguments[cast<BlockArgument>(matrix).getArgNumber()];
  if (start)
    right = emit.address(right, elementOf(matrix), start);
}

// Packs rows [k, k + part) of a panel of the right side.
void MatmulEmitter::pack(Value column, Panel panel, Value k, Value part, Value packed) {
  Type element = elementOf(product.getRhs());
  auto at = [&](Value row, Value index) {
    return emit.address(emit.address(right, element, emit.mul(row, rightStride)), element, index);
  };
  if (transposed)
    return emitPackTransposed(emit, panel, at(column, k), rightStride, part, packed, /*toStride=*/1, element, terms);
  emitPack(emit, panel, at(k, column), rightStride, part, packed, element, terms);
}

// Emits `count` rows from `row` on of one panel of columns. `a` is the left side of these rows, with a stride of
// `stride` floats or pairs. `packed` is the whole panel of the right side; null: it is packed part by part, and a left
// side that must be converted is as it lies in memory.
void MatmulEmitter::emitPanel(Value column, Panel panel, Value row, Value count, Value a, int64_t stride,
                              Value packed) {
  Type f32 = emit.realType();
  int64_t partTerms = panel.depth() * termsOfUnit(terms);
  Value own = packed ? Value() : emit.array(f32, panel.depth() * panel.width());
  bool byParts = converts() && !packed;
  Value converted = byParts ? emit.array(f32, blockRows() * panel.depth()) : Value();
  // The sums of a product without an epilogue, of one part, are the result.
  if (packed && depth <= partTerms) {
    bool direct = isResult();
    Value sums = direct ? emit.address(emit.address(results[0], f32, emit.mul(row, columns)), f32, column)
                        : emit.array(f32, blockRows() * panel.width());
    emitProduct(emit, Layout::rows, panel, a, emit.integer(stride), packed, emit.integer(unitsOf(terms, depth)), sums,
                count, Sums::exact, terms, direct ? emit.integer(columns) : Value());
    if (!direct)
      emitEpilogue(column, panel, row, sums, count);
    return;
  }
  Value sums = emit.array(f32, blockRows() * panel.width());
  forVectors(emit, panel, count,
             [&](Value index) { emit.storeLanes(emit.zeros(emit.vectorOf(f32)), emit.address(sums, f32, index)); });
  emit.loop(emit.integer(0), emit.integer(depth), partTerms, [&](Value k) {
    Value part = emit.min(emit.integer(partTerms), emit.sub(emit.integer(depth), k)), unit = unitsOf(emit, terms, k);
    Value b = packed ? emit.address(packed, f32, emit.mul(unit, panel.width())) : own;
    if (!packed)
      pack(column, panel, k, part, own);
    Value left = byParts ? converted : emit.address(a, f32, unit);
    if (byParts)
      emitExtend(emit, leftElement, emit.address(a, leftElement, k), depth, converted, panel.depth(), count, part,
                 terms);
    emitProduct(emit, Layout::rows, panel, left, emit.integer(byParts ? panel.depth() : stride), b,
                unitsOf(emit, terms, part), sums, count, Sums::there, terms);
  });
  emitEpilogue(column, panel, row, sums, count);
}

// Emits `count` rows from `row` on of all panels of a group, whose right sides are packed. The rows of `left` (floats)
// are packed for tiles, a part of the depth at a time.
void MatmulEmitter::emitPackedPanels(Value fromColumn, Value toColumn, Value row, Value count, Value left,
                                     int64_t stride, llvm::function_ref<Value(Value column)> panelAt) {
  Type f32 = emit.realType();
  int64_t units = unitsOf(terms, depth), most = llvm::divideCeil(units, llvm::divideCeil(units, maxPartDepth)),
          step = packedLeftStride(most);
  bool parts = units > most;
  Value packedLeft = emit.array(f32, packedLeftFloats(blockRows(), step));
  Value sums = emit.array(f32, blockRows() * (parts ? groupColumns() : emit.vectors.tileVectors() * lanes));
  auto sumsAt = [&](Value column) {
    return parts ? emit.address(sums, f32, emit.mul(emit.sub(column, fromColumn), blockRows())) : sums;
  };
  auto part = [&](Value k, Value size, Sums start, bool last) {
    emitPackLeft(emit, Layout::rows, emit.address(left, f32, k), stride, size, packedLeft, step, count);
    forPanels(emit, columns, fromColumn, toColumn, [&](Value column, Panel panel) {
      Value b = emit.address(panelAt(column), f32, emit.mul(k, panel.width()));
      emitProduct(emit, Layout::tiles, panel, packedLeft, emit.integer(step), b, size, sumsAt(column), count, start,
                  terms);
      if (last)
        emitEpilogue(column, panel, row, sumsAt(column), count);
    });
  };
  part(emit.integer(0), emit.integer(most), Sums::fresh, !parts);
  if (!parts)
    return;
  int64_t rest = (units - 1) / most * most;
  emit.loop(emit.integer(most), emit.integer(rest), most,
            [&](Value k) { part(k, emit.integer(most), Sums::there, false); });
  part(emit.integer(rest), emit.integer(units - rest), Sums::there, true);
}

// Emits rows [from, to) of columns [fromColumn, toColumn), of at most `groupColumns` columns. The right side of all
// columns is packed at once if it is not too large, and a block of rows passes all panels while it is in the L2 cache.
void MatmulEmitter::emitGroup(Value fromColumn, Value toColumn, Value from, Value to) {
  Type f32 = emit.realType();
  int64_t padded = paddedDepth();
  Value whole = packsAtOnce() ? emit.array(f32, padded * groupColumns()) : Value();
  auto panelAt = [&](Value column) {
    return whole ? emit.address(whole, f32, emit.mul(emit.sub(column, fromColumn), padded)) : Value();
  };
  if (whole)
    forPanels(emit, columns, fromColumn, toColumn, [&](Value column, Panel panel) {
      pack(column, panel, emit.integer(0), emit.integer(depth), panelAt(column));
    });
  Value converted = converts() && whole ? emit.array(f32, blockRows() * padded) : Value();
  Value a = arguments[cast<BlockArgument>(product.getLhs()).getArgNumber()];
  emit.loop(from, to, blockRows(), [&](Value row) {
    Value count = emit.min(emit.integer(blockRows()), emit.sub(to, row));
    Value left = emit.address(a, leftElement, emit.mul(row, depth));
    if (converted) {
      emitExtend(emit, leftElement, left, depth, converted, padded, count, emit.integer(depth), terms);
      left = converted;
    }
    if (packsTiles())
      return emitPackedPanels(fromColumn, toColumn, row, count, left, converted ? padded : depth, panelAt);
    forPanels(emit, columns, fromColumn, toColumn, [&](Value column, Panel panel) {
      emitPanel(column, panel, row, count, left, converted ? padded : unitsOf(terms, depth), panelAt(column));
    });
  });
}

// Tiles of the grid are numbered along the columns of the tile grid: a thread's tiles are the rest of a column of
// tiles, full columns, and the start of a column.
LogicalResult MatmulEmitter::run() {
  product = cast<mt::MatmulOp>(mt::productOf(kernel.body()));
  Value left = product.getLhs();
  depth = tensorOf(left).getShape().back();
  leftElement = elementOf(left);
  terms = termsOf(emit, leftElement, elementOf(product.getRhs()));
  transposed = product.getTransposeB();
  columns = tensorOf(product.getRhs()).getDimSize(transposed ? 0 : 1);
  for (int64_t i = 0, e = kernel.body().getNumArguments(); i < e; ++i)
    arguments.push_back(kernel.argumentBuffer(i));
  for (int64_t i = 0, e = kernel.yields().size(); i < e; ++i)
    results.push_back(kernel.resultBuffer(i));
  findRight();

  Value rows = isSplit(left) ? emit.mul(kernel.rows(), linesOf(left)) : emit.integer(linesOf(left));
  int64_t tileRows = isSplit(left) ? kernel.grid.rowsPerTile * linesOf(left) : matmulRows;
  Value blocks = emit.max(emit.ceilDiv(rows, tileRows), emit.integer(1)), none = emit.integer(0);
  int64_t wides = llvm::divideCeil(columns, panelColumns);
  if (wides == 1) {
    emitGroup(none, emit.integer(panelColumns), emit.mul(kernel.tileBegin, tileRows),
              emit.min(emit.mul(kernel.tileEnd, tileRows), rows));
    return success();
  }
  Value firstWide = emit.div(kernel.tileBegin, blocks), firstBlock = emit.rem(kernel.tileBegin, blocks);
  Value lastWide = emit.div(kernel.tileEnd, blocks), lastBlock = emit.rem(kernel.tileEnd, blocks);
  Value whole = emit.div(emit.add(kernel.tileBegin, emit.add(blocks, -1)), blocks);
  auto choose = [&](Value part, Value rest, Value middle, Value start) -> Value {
    Value later = arith::SelectOp::create(emit, emit.equal(part, emit.integer(1)), middle, start);
    return arith::SelectOp::create(emit, emit.equal(part, none), rest, later);
  };
  Value restEnd = arith::SelectOp::create(emit, emit.equal(firstWide, lastWide), lastBlock, blocks);
  emit.loop(none, emit.integer(3), 1, [&](Value part) {
    Value from = emit.mul(choose(part, firstBlock, none, none), tileRows);
    Value to = emit.min(emit.mul(choose(part, restEnd, blocks, lastBlock), tileRows), rows);
    Value fromWide = choose(part, firstWide, whole, emit.max(lastWide, whole));
    Value toWide = choose(part, whole, lastWide, emit.add(lastWide, 1));
    emit.when(emit.less(from, to), [&] {
      emit.loop(emit.mul(fromWide, panelColumns), emit.mul(toWide, panelColumns), groupColumns(), [&](Value column) {
        Value end = emit.min(emit.add(column, groupColumns()), emit.mul(toWide, panelColumns));
        emitGroup(column, end, from, to);
      });
    });
  });
  return success();
}

LogicalResult mtc::emitMatmul(Kernel &kernel) { return MatmulEmitter(kernel).run(); }
