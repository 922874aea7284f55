// SPDX-License-Identifier: Apache-2.0
//
// Sums of rows at indices over the batch: a thread has one element of the table. A block looks at a group of ids at
// once, a thread at one of them, and leaves out the groups that name none of its rows.
#include "compiler/codegen/common/Rules.h"
#include "compiler/codegen/gpu/Block.h"
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "compiler/codegen/gpu/Tree.h"

using namespace mlir;
using namespace mtc;

namespace {
class BlockScatter {
public:
  BlockScatter(BlockKernel &kernel, mt::ScatterAddOp op);
  void run();

private:
  Value entryAt(Value position);
  Value named(Value first, Value end, Value group);
  Value sumOf(Value first, Value end, Value sum);

  BlockKernel &kernel;
  Emitter &emit;
  int64_t entries, count, width, each; // rows and elements of the table, columns, ids of a sample
  Type f32, i32;
  Value ids, updates;
  Value marks;                        // two: the last group that names a row of the block, by the group's parity
  Value entry, column, lowest, above; // of the thread's element; the block's first row, the one behind its last
};
} // namespace

BlockScatter::BlockScatter(BlockKernel &kernel, mt::ScatterAddOp op)
    : kernel(kernel), emit(kernel.emit), entries(op.getType().getDimSize(0)), count(innerCount(op.getResult())),
      width(count / entries), each(innerCount(op.getIds())), f32(emit.getF32Type()), i32(emit.getI32Type()),
      ids(kernel.argument(cast<BlockArgument>(op.getIds()).getArgNumber())),
      updates(kernel.argument(cast<BlockArgument>(op.getUpdates()).getArgNumber())),
      marks(kernel.allocateShared(i32, 2)) {}

Value BlockScatter::entryAt(Value position) {
  return entryOf(emit, emit.load(i32, emit.address(ids, i32, position)), entries);
}

// Whether one of the ids at [first, end) names a row of the block: the same for all its threads. Group after group
// takes the other mark, so that one barrier a group is enough.
Value BlockScatter::named(Value first, Value end, Value group) {
  Value mark = emit.address(marks, i32, emit.rem(group, emit.integer(2))), position = emit.add(first, kernel.thread);
  Value number = arith::TruncIOp::create(emit, i32, emit.add(group, 1));
  emit.when(emit.less(position, end), [&] {
    Value found = entryAt(position);
    Value inside = both(emit, emit.less(found, above), emit.less(emit.add(lowest, -1), found));
    emit.when(inside, [&] { emit.store(number, mark); });
  });
  kernel.barrier();
  return emit.equal(emit.load(i32, mark), number);
}

// sum + the updates at [first, end) of the thread's row, in order.
Value BlockScatter::sumOf(Value first, Value end, Value sum) {
  return emit.loop(first, end, 1, sum, [&](Value position, ValueRange sum) {
    auto add = [&]() -> Value {
      Value taken = emit.load(f32, emit.address(updates, f32, emit.add(emit.mul(position, width), column)));
      return arith::AddFOp::create(emit, sum[0], taken);
    };
    return Emitter::Values{choose(emit, emit.equal(entryAt(position), entry), add, sum[0])};
  })[0];
}

void BlockScatter::run() {
  // Threads behind the last element compute it too: they take part in barriers.
  Value begin = emit.mul(kernel.tile, convThreads), own = emit.add(begin, kernel.thread);
  Value index = emit.least(own, emit.integer(count - 1)), columns = emit.integer(width);
  entry = emit.div(index, columns), column = emit.rem(index, columns);
  lowest = emit.div(begin, columns);
  above = emit.add(emit.div(emit.add(begin, convThreads - 1), columns), 1);
  kernel.forThreads(2, [&](Value mark) { emit.store(emit.zeros(i32), emit.address(marks, i32, mark)); });
  kernel.barrier();
  // All shards before one are full, and have as many groups each.
  Shards shards = shardsOf(kernel);
  Value groups = emit.ceilDiv(emit.mul(shards.size, each), convThreads);
  auto shard = [&](Value from, Value to) {
    Value first = emit.mul(from, each), end = emit.mul(to, each);
    Value before = emit.mul(emit.div(from, shards.size), groups);
    return emit.loop(first, end, convThreads, emit.zeros(f32), [&](Value position, ValueRange sum) {
      Value groupEnd = emit.least(emit.add(position, convThreads), end);
      Value group = emit.add(before, emit.div(emit.sub(position, first), emit.integer(convThreads)));
      auto add = [&] { return sumOf(position, groupEnd, sum[0]); };
      return Emitter::Values{choose(emit, named(position, groupEnd, group), add, sum[0])};
    });
  };
  emitBlockTree(kernel, 1, shard, [&](ValueRange root) {
    emit.when(emit.less(own, emit.integer(count)),
              [&] { emit.store(root[0], emit.address(kernel.result(0), f32, index)); });
  });
}

GpuGrid mtc::scatterAddGpuGrid(plan::KernelOp op, int64_t) {
  Value table = op.getBody().front().getTerminator()->getOperand(0);
  return {convThreads, 0, ceilDiv(innerCount(table), convThreads), 0, 0};
}

LogicalResult mtc::emitBlockScatterAdd(BlockKernel &kernel) {
  BlockScatter(kernel, kernel.yields()[0].getDefiningOp<mt::ScatterAddOp>()).run();
  return success();
}
