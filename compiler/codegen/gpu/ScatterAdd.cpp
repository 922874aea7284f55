// SPDX-License-Identifier: Apache-2.0
//
// Sums of rows at indices over the batch: a thread has one element of the table. A block looks at a group of ids at
// once, a thread at some of them, and leaves out the groups that name none of its rows.
#include "compiler/codegen/common/Rules.h"
#include "compiler/codegen/gpu/Block.h"
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "compiler/codegen/gpu/Tree.h"

using namespace mlir;
using namespace mtc;

// Ids of a group, of which a thread loads so many; and those that it compares at once.
constexpr int64_t idsPerThread = 4, groupIds = idsPerThread * convThreads, idsAtOnce = elementsPerThread;

namespace {
class BlockScatter {
public:
  BlockScatter(BlockKernel &kernel, mt::ScatterAddOp op);
  void run();

private:
  Value entryAt(Value position);
  Value named(Value first, Value end, Value group);
  Value sumOf(Value first, Value end, Value group, Value sum);
  Value entriesOf(Value group) {
    return emit.address(names, i32, emit.mul(emit.rem(group, emit.integer(2)), groupIds));
  }

  BlockKernel &kernel;
  Emitter &emit;
  int64_t entries, count, width, each; // rows and elements of the table, columns, ids of a sample
  Type f32, i32;
  Value ids, updates;
  Value marks;                        // two: the last group that names a row of the block, by the group's parity
  Value names;                        // the rows that the ids of a group name, likewise; -1 behind the last
  Value entry, column, lowest, above; // of the thread's element; the block's first row, the one behind its last
};
} // namespace

BlockScatter::BlockScatter(BlockKernel &kernel, mt::ScatterAddOp op)
    : kernel(kernel), emit(kernel.emit), entries(op.getType().getDimSize(0)), count(innerCount(op.getResult())),
      width(count / entries), each(innerCount(op.getIds())), f32(emit.getF32Type()), i32(emit.getI32Type()),
      ids(kernel.argument(cast<BlockArgument>(op.getIds()).getArgNumber())),
      updates(kernel.argument(cast<BlockArgument>(op.getUpdates()).getArgNumber())),
      marks(kernel.allocateShared(i32, 2)), names(kernel.allocateShared(i32, 2 * groupIds)) {}

Value BlockScatter::entryAt(Value position) {
  return entryOf(emit, emit.load(i32, emit.address(ids, i32, position)), entries);
}

// Whether one of the ids at [first, end) names a row of the block: the same for all its threads. Group after group
// takes the other mark, so that one barrier a group is enough.
Value BlockScatter::named(Value first, Value end, Value group) {
  Value mark = emit.address(marks, i32, emit.rem(group, emit.integer(2))), last = emit.add(end, -1);
  Value number = arith::TruncIOp::create(emit, i32, emit.add(group, 1)), entries = entriesOf(group), any;
  for (int64_t i = 0; i < idsPerThread; ++i) {
    Value index = emit.add(kernel.thread, i * convThreads), position = emit.add(first, index);
    Value found = entryAt(emit.least(position, last));
    found = arith::SelectOp::create(emit, emit.less(position, end), found, emit.integer(-1));
    emit.store(arith::TruncIOp::create(emit, i32, found), emit.address(entries, i32, index));
    Value inside = both(emit, emit.less(found, above), emit.less(emit.add(lowest, -1), found));
    any = any ? Value(arith::OrIOp::create(emit, any, inside)) : inside;
  }
  emit.when(any, [&] { emit.store(number, mark); });
  kernel.barrier();
  return emit.equal(emit.load(i32, mark), number);
}

// sum + the updates at [first, end) of the thread's row, in order.
Value BlockScatter::sumOf(Value first, Value end, Value group, Value sum) {
  Value entries = entriesOf(group), own = arith::TruncIOp::create(emit, i32, entry);
  return emit.loop(emit.integer(0), emit.sub(end, first), idsAtOnce, sum, [&](Value index, ValueRange sum) {
    Value some = LLVM::LoadOp::create(emit, VectorType::get({idsAtOnce}, i32), emit.address(entries, i32, index),
                                      idsAtOnce * emit.bytes(i32));
    Emitter::Values same;
    Value any;
    for (int64_t i = 0; i < idsAtOnce; ++i) {
      same.push_back(emit.equal(emit.extract(some, i), own));
      any = any ? Value(arith::OrIOp::create(emit, any, same[i])) : same[i];
    }
    auto addAll = [&] {
      Value total = sum[0];
      for (int64_t i = 0; i < idsAtOnce; ++i) {
        auto add = [&]() -> Value {
          Value position = emit.add(first, emit.add(index, i));
          Value taken = emit.load(f32, emit.address(updates, f32, emit.add(emit.mul(position, width), column)));
          return arith::AddFOp::create(emit, total, taken);
        };
        total = choose(emit, same[i], add, total);
      }
      return total;
    };
    return Emitter::Values{choose(emit, any, addAll, sum[0])};
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
  Value groups = emit.ceilDiv(emit.mul(shards.size, each), groupIds);
  auto shard = [&](Value from, Value to) {
    Value first = emit.mul(from, each), end = emit.mul(to, each);
    Value before = emit.mul(emit.div(from, shards.size), groups);
    return emit.loop(first, end, groupIds, emit.zeros(f32), [&](Value position, ValueRange sum) {
      Value groupEnd = emit.least(emit.add(position, groupIds), end);
      Value group = emit.add(before, emit.div(emit.sub(position, first), emit.integer(groupIds)));
      auto add = [&] { return sumOf(position, groupEnd, group, sum[0]); };
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
