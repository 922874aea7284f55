// SPDX-License-Identifier: Apache-2.0
//
// Weight gradients: (? x M)^T . (? x N), summed over the samples by the tree.
#include "compiler/codegen/Tile.h"
#include "compiler/codegen/Tree.h"

using namespace mlir;
using namespace mtc;

// Samples of a packed panel.
static constexpr int64_t packedSamples = 128;

namespace {
class TreeEmitter {
public:
  TreeEmitter(Kernel &kernel, int64_t height, int64_t columns)
      : kernel(kernel), emit(kernel.emit), leaves(leavesOf(kernel)), height(height), columns(columns) {}
  void run();
  Value left, right, result; // buffers

private:
  Kernel &kernel;
  Emitter &emit;
  Leaves leaves;
  int64_t height, columns;

  void emitPanel(Value column, Panel panel, Value from, Value to);
  void emitTiles(Panel panel, Value a, Value packed, const Leaves &part, Value to, Value step, Value count);
  void emitNodes(Panel panel, const Leaves &nodes, Value sums, Value count, llvm::function_ref<void(Value, Value)> node);
  void emitGroups(Panel panel, Value a, Value packed, Value sums, Value count, llvm::function_ref<void(Value, Value)> pack);
  void emitLongLeaves(Panel panel, Value a, Value packed, Value sums, Value count, llvm::function_ref<void(Value, Value)> pack);
  void store(Value column, Panel panel, Value row, Value sums, Value count);
};
} // namespace

void TreeEmitter::store(Value column, Panel panel, Value row, Value sums, Value count) {
  Type f32 = emit.getF32Type();
  emit.loop(emit.integer(0), count, 1, [&](Value i) {
    Value from = emit.address(sums, f32, emit.mul(i, panel.width()));
    Value to = emit.address(emit.address(result, f32, emit.mul(emit.add(row, i), columns)), f32, column);
    for (int64_t vector = 0; vector < panel.vectors; ++vector) {
      bool masked = vector + 1 == panel.vectors && panel.last < lanes;
      emit.storeLanes(emit.loadLanes(f32, emit.address(from, f32, vector * lanes)), emit.address(to, f32, vector * lanes),
                      masked ? emit.maskBelow(panel.last) : Value());
    }
  });
}

// The function of a tile of `rows` rows: (a, stride, packed, samples, size, count, stack, to, step). Sums `count` leaves of `size`
// samples, the last one shorter, in registers; `stride` and `step` are floats between rows of a and of the result.
static LLVM::LLVMFuncOp treeFunction(Emitter &emit, int64_t rows, int64_t vectors, int64_t levels) {
  std::string name = (Twine("tree_") + Twine(rows) + "x" + Twine(vectors)).str();
  if (LLVM::LLVMFuncOp known = emit.lookup(name))
    return known;
  Type pointer = emit.pointer(), i64 = emit.getI64Type(), f32 = emit.getF32Type();
  SmallVector<Type> types{pointer, i64, pointer, i64, i64, i64, pointer, pointer, i64};
  return emit.function(name, types, /*internal=*/true, [&](ValueRange arguments) {
    Value a = arguments[0], stride = arguments[1], packed = arguments[2];
    Leaves leaves{arguments[3], arguments[4], arguments[5], levels};
    Value to = arguments[7], step = arguments[8];
    Emitter::Values root = emitTree(emit, leaves, arguments[6], rows * vectors, [&](Value from, Value end) {
      Emitter::Values zeros(rows * vectors, emit.zeros(emit.vectorOf(f32)));
      return emit.loop(from, end, 1, zeros, [&](Value sample, ValueRange carried) {
        return emitOuterProduct(emit, emit.address(a, f32, emit.mul(sample, stride)),
                                emit.address(packed, f32, emit.mul(sample, vectors * lanes)), rows, vectors, carried);
      });
    });
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t vector = 0; vector < vectors; ++vector)
        emit.storeLanes(root[row * vectors + vector], emit.address(emit.address(to, f32, emit.mul(step, row)), f32, vector * lanes));
  });
}

// The tree of one packed panel of samples, for rows [0, count) of the result.
void TreeEmitter::emitTiles(Panel panel, Value a, Value packed, const Leaves &part, Value to, Value step, Value count) {
  Type f32 = emit.getF32Type();
  Value stack = emit.stack(f32, panelFloats * 2);
  forTiles(emit, panel, count, [&](Value row, int64_t rows) {
    Value target = emit.address(to, f32, emit.mul(row, step));
    emit.call(treeFunction(emit, rows, panel.vectors, part.levels),
              {emit.address(a, f32, row), emit.integer(height), packed, part.rows, part.size, part.count, stack, target, step});
  });
}

// Rows [from, to) of the result, one panel of its columns.
void TreeEmitter::emitPanel(Value column, Panel panel, Value from, Value to) {
  Type f32 = emit.getF32Type();
  Value packed = emit.stack(f32, packedSamples * panel.width()), sums = emit.stack(f32, panelFloats);
  auto pack = [&](Value sample, Value part) {
    Value b = emit.address(emit.address(right, f32, emit.mul(sample, columns)), f32, column);
    emitPack(emit, panel, b, columns, part, packed);
  };
  bool few = !kernel.fast && kernel.leafRows <= packedSamples;
  Value fits = emit.less(leaves.rows, emit.integer(packedSamples + 1));
  emit.when(
      fits,
      [&] {
        pack(emit.integer(0), leaves.rows);
        Value a = emit.address(left, f32, from);
        if (panel.last == lanes) {
          Value target = emit.address(emit.address(result, f32, emit.mul(from, columns)), f32, column);
          emitTiles(panel, a, packed, leaves, target, emit.integer(columns), emit.sub(to, from));
          return;
        }
        emit.loop(from, to, panel.depth(), [&](Value row) {
          Value count = emit.least(emit.integer(panel.depth()), emit.sub(to, row));
          emitTiles(panel, emit.address(left, f32, row), packed, leaves, sums, emit.integer(panel.width()), count);
          store(column, panel, row, sums, count);
        });
      },
      [&] {
        emit.loop(from, to, panel.depth(), [&](Value row) {
          Value count = emit.least(emit.integer(panel.depth()), emit.sub(to, row));
          Value a = emit.address(left, f32, row);
          few ? emitGroups(panel, a, packed, sums, count, pack) : emitLongLeaves(panel, a, packed, sums, count, pack);
          store(column, panel, row, sums, count);
        });
      });
}

void TreeEmitter::emitNodes(Panel panel, const Leaves &nodes, Value sums, Value count, llvm::function_ref<void(Value, Value)> node) {
  Type f32 = emit.getF32Type();
  Value stack = emit.stack(f32, panelFloats * nodes.levels);
  auto at = [&](Value level, Value index) {
    return emit.address(emit.address(stack, f32, emit.mul(level, panelFloats)), f32, index);
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
  emitTreeInMemory(emit, nodes, node, combine, push);
}

// Groups of leaves, each a whole subtree whose samples fit in a packed panel.
void TreeEmitter::emitGroups(Panel panel, Value a, Value packed, Value sums, Value count,
                             llvm::function_ref<void(Value, Value)> pack) {
  Type f32 = emit.getF32Type();
  int64_t group = 1;
  while (2 * group * kernel.leafRows <= packedSamples)
    group *= 2;
  int64_t samples = group * kernel.leafRows;
  Leaves nodes{leaves.rows, emit.integer(samples), emit.ceilDiv(leaves.rows, samples), leaves.levels};
  emitNodes(panel, nodes, sums, count, [&](Value first, Value end) {
    Value part = emit.sub(end, first);
    pack(first, part);
    Leaves inner{part, emit.integer(kernel.leafRows), emit.ceilDiv(part, kernel.leafRows), leaves.levels};
    Value start = emit.address(a, f32, emit.mul(first, height));
    emitTiles(panel, start, packed, inner, sums, emit.integer(panel.width()), count);
  });
}

// Leaves that are longer than a packed panel: their sums grow in memory.
void TreeEmitter::emitLongLeaves(Panel panel, Value a, Value packed, Value sums, Value count,
                                 llvm::function_ref<void(Value, Value)> pack) {
  Type f32 = emit.getF32Type();
  emitNodes(panel, leaves, sums, count, [&](Value first, Value end) {
    forVectors(emit, panel, count, [&](Value index) { emit.storeLanes(emit.zeros(emit.vectorOf(f32)), emit.address(sums, f32, index)); });
    emit.loop(first, end, packedSamples, [&](Value sample) {
      Value part = emit.least(emit.integer(packedSamples), emit.sub(end, sample));
      pack(sample, part);
      Value start = emit.address(a, f32, emit.mul(sample, height));
      emitProduct(emit, Layout::columns, panel, start, emit.integer(height), packed, part, sums, count);
    });
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

LogicalResult mtc::emitMatmulTree(Kernel &kernel) {
  auto product = kernel.yields()[0].getDefiningOp<mt::MatmulOp>();
  if (!product || !product.getTransposeA() || product.getTransposeB() || !isa<BlockArgument>(product.getLhs()) ||
      !isa<BlockArgument>(product.getRhs()))
    return kernel.op.emitError("expected one mt.matmul transpose_a of two operands in a kernel of kind matmul_tree");
  TreeEmitter tree(kernel, tensorOf(product.getLhs()).getDimSize(1), tensorOf(product.getRhs()).getDimSize(1));
  tree.left = kernel.argumentBuffer(cast<BlockArgument>(product.getLhs()).getArgNumber());
  tree.right = kernel.argumentBuffer(cast<BlockArgument>(product.getRhs()).getArgNumber());
  tree.result = kernel.resultBuffer(0);
  tree.run();
  return success();
}
