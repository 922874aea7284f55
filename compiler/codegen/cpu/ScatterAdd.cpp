// SPDX-License-Identifier: Apache-2.0
//
// Sums of rows at indices over the batch: a tile of the grid is a block of rows of the table, which reads all indices
// of a shard and adds those that fall in it, in order; shards by the tree.
#include "compiler/codegen/common/Tree.h"
#include "compiler/codegen/cpu/Kernels.h"

using namespace mlir;
using namespace mtc;

// Floats of a block of the table, and of a line of it.
static constexpr int64_t blockFloats = 4096, lineFloats = 1024;

namespace {
struct ScatterShape {
  int64_t entries, width; // of the table
  int64_t ids;            // of a sample
  int64_t line;           // floats of a row that a tile adds to
  int64_t rows;           // of a block

  explicit ScatterShape(mt::ScatterAddOp op)
      : entries(op.getType().getDimSize(0)), width(innerCount(op.getResult()) / entries), ids(innerCount(op.getIds())),
        line(std::min(width, lineFloats)),
        rows(std::max<int64_t>(1, std::min(entries, blockFloats / std::max<int64_t>(line, 1)))) {}
  int64_t blocks() const { return (entries + rows - 1) / rows; }
  int64_t lines() const { return (width + line - 1) / line; }
};
} // namespace

static mt::ScatterAddOp scatterOf(plan::KernelOp op) {
  return op.getBody().front().getTerminator()->getOperand(0).getDefiningOp<mt::ScatterAddOp>();
}

Grid mtc::scatterAddGrid(plan::KernelOp op) {
  ScatterShape shape(scatterOf(op));
  return {0, shape.blocks() * shape.lines(), 0};
}

LogicalResult mtc::emitScatterAdd(Kernel &kernel) {
  mt::ScatterAddOp op = scatterOf(kernel.op);
  Emitter &emit = kernel.emit;
  Type f32 = emit.getF32Type(), i32 = emit.getI32Type();
  ScatterShape shape(op);
  Shards shards = shardsOf(kernel);
  Value ids = kernel.argumentBuffer(cast<BlockArgument>(op.getIds()).getArgNumber());
  Value updates = kernel.argumentBuffer(cast<BlockArgument>(op.getUpdates()).getArgNumber()),
        result = kernel.resultBuffer(0);
  // A line has room for whole vectors.
  int64_t step = (shape.line + lanes - 1) / lanes * lanes, floats = shape.rows * step;
  Value sums = emit.array(f32, floats), stack = emit.array(f32, floats * shards.levels);
  auto forSums = [&](llvm::function_ref<void(Value)> each) {
    emit.loop(emit.integer(0), emit.integer(floats), lanes, each);
  };
  auto sumAt = [&](Value index) { return emit.address(sums, f32, index); };
  auto saved = [&](Value level, Value index) {
    return emit.address(emit.address(stack, f32, emit.mul(level, floats)), f32, index);
  };
  emit.loop(kernel.tileBegin, kernel.tileEnd, 1, [&](Value tile) {
    Value firstRow = emit.mul(emit.div(tile, emit.integer(shape.lines())), shape.rows);
    Value firstColumn = emit.mul(emit.rem(tile, emit.integer(shape.lines())), shape.line);
    Value rows = emit.least(emit.integer(shape.rows), emit.sub(emit.integer(shape.entries), firstRow));
    Value columns = emit.least(emit.integer(shape.line), emit.sub(emit.integer(shape.width), firstColumn));
    auto forLine = [&](llvm::function_ref<void(Value, Value)> each) {
      emit.loop(emit.integer(0), columns, lanes, [&](Value j) { each(j, emit.maskBelow(emit.sub(columns, j))); });
    };
    auto shard = [&](Value from, Value end) {
      forSums([&](Value index) { emit.storeLanes(emit.zeros(emit.vectorOf(f32)), sumAt(index)); });
      emit.loop(emit.mul(from, shape.ids), emit.mul(end, shape.ids), 1, [&](Value index) {
        Value id = arith::ExtSIOp::create(emit, emit.getI64Type(), emit.load(i32, emit.address(ids, i32, index)));
        id = emit.sub(emit.least(emit.most(id, emit.integer(0)), emit.integer(shape.entries - 1)), firstRow);
        Value inside = arith::AndIOp::create(emit, emit.less(emit.integer(-1), id), emit.less(id, rows));
        emit.when(inside, [&] {
          Value line = emit.address(sums, f32, emit.mul(id, step));
          Value from = emit.address(emit.address(updates, f32, emit.mul(index, shape.width)), f32, firstColumn);
          forLine([&](Value j, Value mask) {
            Value place = emit.address(line, f32, j);
            Value taken = emit.loadLanes(f32, emit.address(from, f32, j), mask);
            emit.storeLanes(arith::AddFOp::create(emit, emit.loadLanes(f32, place), taken), place);
          });
        });
      });
    };
    auto combine = [&](Value level) {
      forSums([&](Value index) {
        emit.storeLanes(
            arith::AddFOp::create(emit, emit.loadLanes(f32, saved(level, index)), emit.loadLanes(f32, sumAt(index))),
            sumAt(index));
      });
    };
    auto push = [&](Value level) {
      forSums([&](Value index) { emit.storeLanes(emit.loadLanes(f32, sumAt(index)), saved(level, index)); });
    };
    emitTreeInMemory(emit, shards, shard, combine, push);
    emit.loop(emit.integer(0), rows, 1, [&](Value row) {
      Value from = emit.address(sums, f32, emit.mul(row, step));
      Value to =
          emit.address(emit.address(result, f32, emit.mul(emit.add(firstRow, row), shape.width)), f32, firstColumn);
      forLine([&](Value j, Value mask) {
        emit.storeLanes(emit.loadLanes(f32, emit.address(from, f32, j)), emit.address(to, f32, j), mask);
      });
    });
  });
  return success();
}
