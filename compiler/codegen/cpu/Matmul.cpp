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

// Largest number of floats of a panel of the right side that is packed as a whole: 64 KiB of the L2 cache.
static constexpr int64_t maxPackedFloats = 2 * panelFloats;

// Number of rows of the left side that are copied at a time, if it is converted.
static constexpr int64_t extendedRows = 64;

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
  bool transposed = false; // the right side is stored transposed
  Value right;             // the right side, from the first element of its part of a matrix on
  int64_t rightStride = 0; // stride of the matrix' rows, in elements
  SmallVector<Value> arguments, results;

  void findRight();
  void pack(Value column, Panel panel, Value k, Value part, Value packed);
  void emitPanel(Value column, Panel panel, Value from, Value to);
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
  Type f32 = emit.getF32Type();
  emit.loop(emit.integer(0), count, 1, [&](Value i) {
    Value line = emit.address(sums, f32, emit.mul(i, panel.width())), here = emit.add(row, i);
    for (int64_t vector = 0; vector < panel.vectors; ++vector) {
      bool masked = vector + 1 == panel.vectors && panel.last < lanes;
      Value mask = masked ? emit.maskBelow(panel.last) : Value();
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
    }
  });
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

// Emits rows [from, to) of one panel of columns. A small panel is packed once, a large panel again for each block of
// rows.
void MatmulEmitter::emitPanel(Value column, Panel panel, Value from, Value to) {
  Type f32 = emit.getF32Type();
  int64_t units = unitsOf(terms, depth), padded = (units + lanes - 1) / lanes * lanes,
          partTerms = panel.depth() * termsOfUnit(terms);
  bool once = padded * panel.width() <= maxPackedFloats;
  Value packed = emit.array(f32, (once ? padded : std::min(padded, panel.depth())) * panel.width());
  Value sums = emit.array(f32, panelFloats);
  Type element = elementOf(product.getLhs());
  // A left side of 16 bits is converted, a block of rows at a time, unless its terms lie in pairs.
  bool converts = Emitter::isHalf(element) && !(terms == Terms::pairs && depth % 2 == 0);
  int64_t most = converts ? std::min(panel.depth(), extendedRows) : panel.depth();
  int64_t extendedStride = std::min(panel.depth(), padded);
  Value extended = converts ? emit.array(f32, most * extendedStride) : Value();
  Value a = arguments[cast<BlockArgument>(product.getLhs()).getArgNumber()];
  auto forParts = [&](llvm::function_ref<void(Value k, Value part, Value packed)> body) {
    emit.loop(emit.integer(0), emit.integer(depth), partTerms, [&](Value k) {
      Value part = emit.min(emit.integer(partTerms), emit.sub(emit.integer(depth), k));
      Value row = unitsOf(emit, terms, k);
      body(k, part, once ? emit.address(packed, f32, emit.mul(row, panel.width())) : packed);
    });
  };
  auto packPart = [&](Value k, Value part, Value packed) { pack(column, panel, k, part, packed); };
  if (once)
    forParts(packPart);
  emit.loop(from, to, most, [&](Value row) {
    Value count = emit.min(emit.integer(most), emit.sub(to, row));
    forVectors(emit, panel, count,
               [&](Value index) { emit.storeLanes(emit.zeros(emit.vectorOf(f32)), emit.address(sums, f32, index)); });
    forParts([&](Value k, Value part, Value packed) {
      if (!once)
        packPart(k, part, packed);
      Value start = emit.address(emit.address(a, element, emit.mul(row, depth)), element, k),
            stride = emit.integer(units);
      if (extended) {
        emitExtend(emit, element, start, depth, extended, extendedStride, count, part, terms);
        start = extended;
        stride = emit.integer(extendedStride);
      }
      emitProduct(emit, Layout::rows, panel, start, stride, packed, unitsOf(emit, terms, part), sums, count,
                  Sums::there, terms);
    });
    emitEpilogue(column, panel, row, sums, count);
  });
}

LogicalResult MatmulEmitter::run() {
  product = cast<mt::MatmulOp>(mt::productOf(kernel.body()));
  Value left = product.getLhs();
  depth = tensorOf(left).getShape().back();
  terms = termsOf(emit, elementOf(left), elementOf(product.getRhs()));
  transposed = product.getTransposeB();
  columns = tensorOf(product.getRhs()).getDimSize(transposed ? 0 : 1);
  for (int64_t i = 0, e = kernel.body().getNumArguments(); i < e; ++i)
    arguments.push_back(kernel.argumentBuffer(i));
  for (int64_t i = 0, e = kernel.yields().size(); i < e; ++i)
    results.push_back(kernel.resultBuffer(i));
  findRight();

  Value rows = isSplit(left) ? emit.mul(kernel.rows(), linesOf(left)) : emit.integer(linesOf(left));
  int64_t blockRows = isSplit(left) ? kernel.grid.rowsPerTile * linesOf(left) : matmulRows;
  Value blocks = emit.max(emit.ceilDiv(rows, blockRows), emit.integer(1));
  Value first = emit.div(kernel.tileBegin, blocks);
  Value last = emit.div(emit.add(kernel.tileEnd, emit.add(blocks, -1)), blocks);
  emit.loop(first, last, 1, [&](Value wide) {
    Value offset = emit.mul(wide, blocks);
    Value fromBlock = emit.max(emit.sub(kernel.tileBegin, offset), emit.integer(0));
    Value toBlock = emit.min(emit.sub(kernel.tileEnd, offset), blocks);
    Value from = emit.mul(fromBlock, blockRows), to = emit.min(emit.mul(toBlock, blockRows), rows);
    Value column = emit.mul(wide, panelColumns);
    forPanels(emit, columns, column, emit.add(column, panelColumns),
              [&](Value panelColumn, Panel panel) { emitPanel(panelColumn, panel, from, to); });
  });
  return success();
}

LogicalResult mtc::emitMatmul(Kernel &kernel) { return MatmulEmitter(kernel).run(); }
