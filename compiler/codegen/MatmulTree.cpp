// SPDX-License-Identifier: Apache-2.0
//
// Weight gradients: (? x M)^T . (? x N), summed over the samples by the tree.
#include "compiler/codegen/Tile.h"
#include "compiler/codegen/Tree.h"

using namespace mlir;
using namespace mtc;

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

// Rows [from, to) of the result, one panel of its columns.
void TreeEmitter::emitPanel(Value column, Panel panel, Value from, Value to) {
  Type f32 = emit.getF32Type();
  Type vector = emit.vectorOf(f32);
  Value packed = emit.stack(f32, panelFloats), sums = emit.stack(f32, panelFloats);
  Value stack = emit.stack(f32, panelFloats * leaves.levels);
  emit.loop(from, to, panel.depth(), [&](Value row) {
    Value count = emit.least(emit.integer(panel.depth()), emit.sub(to, row));
    auto leaf = [&](Value first, Value end) {
      forVectors(emit, panel, count, [&](Value index) { emit.storeLanes(emit.zeros(vector), emit.address(sums, f32, index)); });
      emit.loop(first, end, panel.depth(), [&](Value sample) {
        Value part = emit.least(emit.integer(panel.depth()), emit.sub(end, sample));
        Value b = emit.address(emit.address(right, f32, emit.mul(sample, columns)), f32, column);
        emitPack(emit, panel, b, columns, part, packed);
        Value a = emit.address(emit.address(left, f32, emit.mul(sample, height)), f32, row);
        emitProduct(emit, Layout::columns, panel, a, emit.integer(height), packed, part, sums, count);
      });
    };
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
    emitTreeInMemory(emit, leaves, leaf, combine, push);
    store(column, panel, row, sums, count);
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
