// SPDX-License-Identifier: Apache-2.0
//
// Weight gradients: (? x M)^T . (? x N), summed over the samples by the tree. A panel of N is packed for as many whole leaves as fit, and
// each tile of the result sums them in registers; its stack of left siblings waits in memory for the next part. Where N is small
// the transposed result is computed, with vectors along M, and turned when it is stored: an element's chain is the same.
#include "compiler/codegen/Tile.h"
#include "compiler/codegen/Tree.h"

using namespace mlir;
using namespace mtc;

// Samples of a packed panel, and rows of the result that share it.
static constexpr int64_t packedSamples = 128, blockRows = 96;

namespace {
class TreeEmitter {
public:
  TreeEmitter(Kernel &kernel, Value left, Value right, int64_t height, int64_t columns, bool turned)
      : kernel(kernel), emit(kernel.emit), leaves(leavesOf(kernel)), left(left), right(right), result(kernel.resultBuffer(0)),
        height(height), columns(columns), turned(turned) {}
  void run();

private:
  Kernel &kernel;
  Emitter &emit;
  Leaves leaves;
  Value left, right, result; // buffers
  int64_t height, columns;   // of what is computed
  bool turned;               // the result is its transpose

  void emitPanel(Value column, Panel panel, Value from, Value to);
  void emitParts(Panel panel, Value column, Value row, Value count, Value target, Value step);
  void emitLongLeaves(Panel panel, Value column, Value row, Value count, Value sums);
  void pack(Panel panel, Value column, Value sample, Value part, Value packed);
  void store(Value column, Panel panel, Value row, Value sums, Value count);
};
} // namespace

// Rows [row, row + count) of the result from sums.
void TreeEmitter::store(Value column, Panel panel, Value row, Value sums, Value count) {
  Type f32 = emit.getF32Type();
  emit.loop(emit.integer(0), count, 1, [&](Value i) {
    Value from = emit.address(sums, f32, emit.mul(i, panel.width())), line = emit.add(row, i);
    if (turned) {
      Value to = emit.address(emit.address(result, f32, emit.mul(column, height)), f32, line);
      emit.loop(emit.integer(0), emit.integer(panel.width() - lanes + panel.last), 1, [&](Value j) {
        emit.store(emit.load(f32, emit.address(from, f32, j)), emit.address(to, f32, emit.mul(j, height)));
      });
      return;
    }
    Value to = emit.address(emit.address(result, f32, emit.mul(line, columns)), f32, column);
    for (int64_t vector = 0; vector < panel.vectors; ++vector) {
      bool masked = vector + 1 == panel.vectors && panel.last < lanes;
      emit.storeLanes(emit.loadLanes(f32, emit.address(from, f32, vector * lanes)), emit.address(to, f32, vector * lanes),
                      masked ? emit.maskBelow(panel.last) : Value());
    }
  });
}

// The function of a tile of `rows` rows: (a, stride, packed, samples, size, count, first, all, stack, to, step). Sums leaves [first,
// first + count) of `all`, each of `size` samples, the last one perhaps shorter; `stride` and `step` are floats between rows of a and of the result.
static LLVM::LLVMFuncOp treeFunction(Emitter &emit, int64_t rows, int64_t vectors, int64_t levels) {
  std::string name = (Twine("tree_") + Twine(rows) + "x" + Twine(vectors)).str();
  if (LLVM::LLVMFuncOp known = emit.lookup(name))
    return known;
  Type pointer = emit.pointer(), i64 = emit.getI64Type(), f32 = emit.getF32Type();
  SmallVector<Type> types{pointer, i64, pointer, i64, i64, i64, i64, i64, pointer, pointer, i64};
  return emit.function(name, types, /*internal=*/true, [&](ValueRange arguments) {
    Value a = arguments[0], stride = arguments[1], packed = arguments[2], to = arguments[9], step = arguments[10];
    Leaves leaves{arguments[3], arguments[4], arguments[5], levels};
    auto leaf = [&](Value from, Value end) {
      Emitter::Values zeros(rows * vectors, emit.zeros(emit.vectorOf(f32)));
      return emit.loop(from, end, 1, zeros, [&](Value sample, ValueRange carried) {
        return emitOuterProduct(emit, emit.address(a, f32, emit.mul(sample, stride)),
                                emit.address(packed, f32, emit.mul(sample, vectors * lanes)), rows, vectors, carried);
      });
    };
    emitTree(emit, leaves, arguments[6], arguments[7], arguments[8], rows * vectors, leaf, [&](ValueRange root) {
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t vector = 0; vector < vectors; ++vector)
          emit.storeLanes(root[row * vectors + vector], emit.address(emit.address(to, f32, emit.mul(step, row)), f32, vector * lanes));
    });
  });
}

void TreeEmitter::pack(Panel panel, Value column, Value sample, Value part, Value packed) {
  Type f32 = emit.getF32Type();
  Value b = emit.address(emit.address(right, f32, emit.mul(sample, columns)), f32, column);
  emitPack(emit, panel, b, columns, part, packed);
}

// `count` rows from `row` on, leaves that fit in a packed panel, to `target`, `step` floats between rows.
void TreeEmitter::emitParts(Panel panel, Value column, Value row, Value count, Value target, Value step) {
  Type f32 = emit.getF32Type();
  Value packed = emit.stack(f32, packedSamples * panel.width());
  Value stack = emit.stack(f32, blockRows * panel.width() * leaves.levels);
  // In fast mode the one leaf fits whole.
  int64_t group = kernel.fast ? 1 : packedSamples / kernel.leafRows;
  emit.loop(emit.integer(0), leaves.count, group, [&](Value first) {
    Value sample = emit.mul(first, leaves.size);
    Value part = emit.least(emit.mul(leaves.size, group), emit.sub(leaves.rows, sample));
    Value count0 = emit.least(emit.integer(group), emit.sub(leaves.count, first));
    pack(panel, column, sample, part, packed);
    Value a = emit.address(emit.address(left, f32, emit.mul(sample, height)), f32, row);
    forTiles(emit, panel, count, [&](Value tile, int64_t rows) {
      emit.call(treeFunction(emit, rows, panel.vectors, leaves.levels),
                {emit.address(a, f32, tile), emit.integer(height), packed, part, leaves.size, count0, first, leaves.count,
                 emit.address(stack, f32, emit.mul(tile, panel.width() * leaves.levels)),
                 emit.address(target, f32, emit.mul(tile, step)), step});
    });
  });
}

// Leaves that are longer than a packed panel: their sums grow in memory.
void TreeEmitter::emitLongLeaves(Panel panel, Value column, Value row, Value count, Value sums) {
  Type f32 = emit.getF32Type();
  int64_t floats = blockRows * panel.width();
  Value packed = emit.stack(f32, packedSamples * panel.width()), stack = emit.stack(f32, floats * leaves.levels);
  auto at = [&](Value level, Value index) { return emit.address(emit.address(stack, f32, emit.mul(level, floats)), f32, index); };
  auto leaf = [&](Value first, Value end) {
    forVectors(emit, panel, count, [&](Value index) { emit.storeLanes(emit.zeros(emit.vectorOf(f32)), emit.address(sums, f32, index)); });
    emit.loop(first, end, packedSamples, [&](Value sample) {
      Value part = emit.least(emit.integer(packedSamples), emit.sub(end, sample));
      pack(panel, column, sample, part, packed);
      Value a = emit.address(emit.address(left, f32, emit.mul(sample, height)), f32, row);
      emitProduct(emit, Layout::columns, panel, a, emit.integer(height), packed, part, sums, count);
    });
  };
  auto combine = [&](Value level) {
    forVectors(emit, panel, count, [&](Value index) {
      Value place = emit.address(sums, f32, index);
      Value sum = arith::AddFOp::create(emit, emit.loadLanes(f32, at(level, index)), emit.loadLanes(f32, place));
      emit.storeLanes(sum, place);
    });
  };
  auto push = [&](Value level) {
    forVectors(emit, panel, count, [&](Value index) {
      emit.storeLanes(emit.loadLanes(f32, emit.address(sums, f32, index)), at(level, index));
    });
  };
  emitTreeInMemory(emit, leaves, leaf, combine, push);
}

// Rows [from, to) of what is computed, one panel of its columns.
void TreeEmitter::emitPanel(Value column, Panel panel, Value from, Value to) {
  Type f32 = emit.getF32Type();
  Value sums = emit.stack(f32, blockRows * panel.width());
  bool direct = panel.last == lanes && !turned;
  emit.loop(from, to, blockRows, [&](Value row) {
    Value count = emit.least(emit.integer(blockRows), emit.sub(to, row));
    auto parts = [&] {
      if (direct) {
        Value target = emit.address(emit.address(result, f32, emit.mul(row, columns)), f32, column);
        return emitParts(panel, column, row, count, target, emit.integer(columns));
      }
      emitParts(panel, column, row, count, sums, emit.integer(panel.width()));
      store(column, panel, row, sums, count);
    };
    auto longLeaves = [&] {
      emitLongLeaves(panel, column, row, count, sums);
      store(column, panel, row, sums, count);
    };
    if (!kernel.fast)
      return kernel.leafRows <= packedSamples ? parts() : longLeaves();
    emit.when(emit.less(leaves.rows, emit.integer(packedSamples + 1)), parts, longLeaves);
  });
}

void TreeEmitter::run() {
  Value rows = emit.integer(height);
  int64_t blocks = (height + treeRows - 1) / treeRows;
  Value first = emit.div(kernel.tileBegin, emit.integer(blocks)), last = emit.ceilDiv(kernel.tileEnd, blocks);
  emit.loop(first, last, 1, [&](Value wide) {
    Value offset = emit.mul(wide, blocks);
    Value fromBlock = emit.most(emit.sub(kernel.tileBegin, offset), emit.integer(0));
    Value toBlock = emit.least(emit.sub(kernel.tileEnd, offset), emit.integer(blocks));
    Value from = emit.mul(fromBlock, treeRows), to = emit.least(emit.mul(toBlock, treeRows), rows);
    Value column = emit.mul(wide, panelColumns);
    forPanels(emit, columns, column, emit.add(column, panelColumns),
              [&](Value panelColumn, Panel panel) { emitPanel(panelColumn, panel, from, to); });
  });
}

bool mtc::isTurned(int64_t height, int64_t columns) { return columns <= lanes && height > columns; }

LogicalResult mtc::emitMatmulTree(Kernel &kernel) {
  auto product = kernel.yields()[0].getDefiningOp<mt::MatmulOp>();
  if (!product || !product.getTransposeA() || product.getTransposeB() || !isa<BlockArgument>(product.getLhs()) ||
      !isa<BlockArgument>(product.getRhs()))
    return kernel.op.emitError("expected one mt.matmul transpose_a of two operands in a kernel of kind matmul_tree");
  Value left = kernel.argumentBuffer(cast<BlockArgument>(product.getLhs()).getArgNumber());
  Value right = kernel.argumentBuffer(cast<BlockArgument>(product.getRhs()).getArgNumber());
  int64_t height = tensorOf(product.getLhs()).getDimSize(1), columns = tensorOf(product.getRhs()).getDimSize(1);
  bool turned = isTurned(height, columns);
  if (turned) {
    std::swap(left, right);
    std::swap(height, columns);
  }
  TreeEmitter(kernel, left, right, height, columns, turned).run();
  return success();
}
