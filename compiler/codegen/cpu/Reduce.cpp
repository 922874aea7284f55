// SPDX-License-Identifier: Apache-2.0
//
// Sums over the rows of several operands by the tree.
#include "compiler/codegen/common/Tree.h"
#include "compiler/codegen/cpu/Kernels.h"
#include "compiler/codegen/cpu/Tile.h"

using namespace mlir;
using namespace mtc;

// Columns [column, column + ...) of one operand, `count` elements a row: a panel of vectors in registers.
static void emitColumns(Kernel &kernel, const Shards &shards, Type element, Value from, Value to, int64_t count,
                        Value column, Panel panel) {
  Emitter &emit = kernel.emit;
  Type f32 = emit.getF32Type();
  Value mask = panel.last < lanes ? emit.maskBelow(panel.last) : Value();
  auto maskOf = [&](int64_t vector) { return vector + 1 == panel.vectors ? mask : Value(); };
  Value stack = emit.array(f32, shards.levels * panel.width());
  Value start = emit.address(from, element, column);
  auto shard = [&](Value first, Value end) {
    Emitter::Values zeros(panel.vectors, emit.zeros(emit.vectorOf(f32)));
    return emit.loop(first, end, 1, zeros, [&](Value row, ValueRange carried) {
      Value line = emit.address(start, element, emit.mul(row, count));
      Emitter::Values next;
      for (auto [vector, sum] : llvm::enumerate(carried)) {
        Value taken = emit.loadLanes(element, emit.address(line, element, vector * lanes), maskOf(vector));
        next.push_back(arith::AddFOp::create(emit, sum, taken));
      }
      return next;
    });
  };
  emitTree(emit, shards, emit.integer(0), shards.count, stack, panel.vectors, shard, [&](ValueRange root) {
    Value address = emit.address(to, f32, column);
    for (auto [vector, sum] : llvm::enumerate(root))
      emit.storeLanes(sum, emit.address(address, f32, vector * lanes), maskOf(vector));
  });
}

LogicalResult mtc::emitReduce(Kernel &kernel) {
  Emitter &emit = kernel.emit;
  Shards shards = shardsOf(kernel);
  emit.loop(kernel.tileBegin, kernel.tileEnd, 1, [&](Value tile) {
    int64_t tiles = 0;
    for (auto [i, yield] : llvm::enumerate(kernel.yields())) {
      auto operand = cast<BlockArgument>(yield.getDefiningOp<mt::ReduceOp>().getOperand());
      int64_t count = innerCount(operand), mine = (count + panelColumns - 1) / panelColumns;
      Value column = emit.mul(emit.add(tile, -tiles), panelColumns);
      Value inside = arith::AndIOp::create(emit, emit.less(emit.integer(tiles - 1), tile),
                                           emit.less(tile, emit.integer(tiles + mine)));
      emit.when(inside, [&] {
        Value from = kernel.argumentBuffer(operand.getArgNumber()), to = kernel.resultBuffer(i);
        forPanels(emit, count, column, emit.add(column, panelColumns), [&](Value at, Panel panel) {
          emitColumns(kernel, shards, elementOf(operand), from, to, count, at, panel);
        });
      });
      tiles += mine;
    }
  });
  return success();
}
