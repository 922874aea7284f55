// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices within a sample. Small products are plain loops, others use the tiles of Tile.h; in both, an
// element is the same FMA chain.
#include "compiler/codegen/cpu/Lines.h"
#include "compiler/codegen/cpu/Rows.h"
#include "compiler/codegen/cpu/Tile.h"

using namespace mlir;
using namespace mtc;

// Number of multiply-adds from which packing pays off.
static constexpr int64_t minTiled = 4096;

namespace {
// C (height x columns) = A (height x depth) . B (depth x columns). `transposedA` and `transposedB`: the matrix is
// stored transposed.
struct RowProduct {
  Emitter &emit;
  int64_t height, depth, columns;
  bool transposedA, transposedB;

  Value at(Value base, Value index, int64_t stride) {
    return emit.address(base, emit.realType(), emit.mul(index, stride));
  }
  void emitLoops(Value a, Value b, Value c);
  void emitTiles(Value a, Value b, Value c);
  void emitPanel(Value a, Value b, Value c, Value column, Panel panel);
};
} // namespace

void RowProduct::emitLoops(Value a, Value b, Value c) {
  Type f32 = emit.realType();
  emit.loop(emit.integer(0), emit.integer(height), 1, [&](Value i) {
    Value aRow = at(a, i, transposedA ? 1 : depth), cRow = at(c, i, columns);
    int64_t aStep = transposedA ? height : 1;
    if (transposedB) {
      emit.loop(emit.integer(0), emit.integer(columns), 1, [&](Value j) {
        Value bRow = at(b, j, depth);
        Value sum = emit.loop(emit.integer(0), emit.integer(depth), 1, emit.zeros(f32), [&](Value k, ValueRange sum) {
          Value x = emit.load(f32, at(aRow, k, aStep)), y = emit.load(f32, emit.address(bRow, f32, k));
          return Emitter::Values{emit.fma(x, y, sum[0])};
        })[0];
        emit.store(sum, emit.address(cRow, f32, j));
      });
      return;
    }
    forChunks(emit, columns, [&](Value j, Value mask) {
      Value bColumn = emit.address(b, f32, j);
      Value sum = emit.loop(
          emit.integer(0), emit.integer(depth), 1, emit.zeros(emit.vectorOf(f32)), [&](Value k, ValueRange sum) {
            Value x = emit.splat(emit.load(f32, at(aRow, k, aStep)));
            return Emitter::Values{emit.fma(x, emit.loadLanes(f32, at(bColumn, k, columns), mask), sum[0])};
          })[0];
      emit.storeLanes(sum, emit.address(cRow, f32, j), mask);
    });
  });
}

// Emits one panel of columns: the sums of a block of rows are in memory while the depth is processed part by part.
void RowProduct::emitPanel(Value a, Value b, Value c, Value column, Panel panel) {
  Type f32 = emit.realType();
  int64_t most = std::min(panel.depth(), (depth + lanes - 1) / lanes * lanes), block = std::min(panel.depth(), height);
  Value packed = emit.array(f32, most * panel.width()), sums = emit.array(f32, block * panel.width());
  Layout layout = transposedA ? Layout::columns : Layout::rows;
  auto emitBlock = [&](Value row, Value count) {
    forVectors(emit, panel, count,
               [&](Value index) { emit.storeLanes(emit.zeros(emit.vectorOf(f32)), emit.address(sums, f32, index)); });
    emit.loop(emit.integer(0), emit.integer(depth), most, [&](Value k) {
      Value part = emit.min(emit.integer(most), emit.sub(emit.integer(depth), k));
      if (transposedB)
        emitPackTransposed(emit, panel, emit.address(at(b, column, depth), f32, k), depth, part, packed);
      else
        emitPack(emit, panel, emit.address(at(b, k, columns), f32, column), columns, part, packed);
      Value start = transposedA ? emit.address(at(a, k, height), f32, row) : emit.address(at(a, row, depth), f32, k);
      emitProduct(emit, layout, panel, start, emit.integer(transposedA ? height : depth), packed, part, sums, count);
    });
    emit.loop(emit.integer(0), count, 1, [&](Value i) {
      Value line = at(sums, i, panel.width()), to = emit.address(at(c, emit.add(row, i), columns), f32, column);
      for (int64_t vector = 0; vector < panel.vectors; ++vector) {
        bool masked = vector + 1 == panel.vectors && panel.last < lanes;
        emit.storeLanes(emit.loadLanes(f32, emit.address(line, f32, vector * lanes)),
                        emit.address(to, f32, vector * lanes), masked ? emit.maskBelow(panel.last) : Value());
      }
    });
  };
  // Heights are constants, so that only tiles of these heights are emitted.
  int64_t whole = height / block * block;
  emit.loop(emit.integer(0), emit.integer(whole), block, [&](Value row) { emitBlock(row, emit.integer(block)); });
  if (whole < height)
    emitBlock(emit.integer(whole), emit.integer(height - whole));
}

void RowProduct::emitTiles(Value a, Value b, Value c) {
  int64_t rounded = (columns + panelColumns - 1) / panelColumns * panelColumns;
  forPanels(emit, columns, emit.integer(0), emit.integer(rounded),
            [&](Value column, Panel panel) { emitPanel(a, b, c, column, panel); });
}

void RowEmitter::matmul(mt::MatmulOp op) {
  ArrayRef<int64_t> left = innerShape(op.getLhs()), right = innerShape(op.getRhs());
  bool transposedA = op.getTransposeA(), transposedB = op.getTransposeB();
  int64_t depth = transposedB ? right.back() : right[right.size() - 2];
  int64_t columns = transposedB ? right[right.size() - 2] : right.back();
  int64_t height = left.size() < 2 ? 1 : transposedA ? left.back() : left[left.size() - 2];
  int64_t matrices = innerCount(op.getLhs()) / (height * depth);
  bool shared = innerCount(op.getRhs()) == depth * columns;
  RowProduct product{emit, height, depth, columns, transposedA, transposedB};
  Value a = floatsOf(op.getLhs()), b = floatsOf(op.getRhs()), c = pointerOf(op.getResult());
  emit.loop(emit.integer(0), emit.integer(matrices), 1, [&](Value matrix) {
    Value aMatrix = product.at(a, matrix, height * depth), cMatrix = product.at(c, matrix, height * columns);
    Value bMatrix = shared ? b : product.at(b, matrix, depth * columns);
    if (height * depth * columns < minTiled)
      product.emitLoops(aMatrix, bMatrix, cMatrix);
    else
      product.emitTiles(aMatrix, bMatrix, cMatrix);
  });
}
