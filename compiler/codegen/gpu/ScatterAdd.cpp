// SPDX-License-Identifier: Apache-2.0
//
// Sums of rows by id over the batch. A block is one warp, which has some rows of the table and 32 of their columns; a
// thread has one column. The warp reads many ids at once, lists the positions whose ids select its rows, and loads many
// updates before it adds the first, so that a chain of additions is not a chain of memory accesses.
#include "compiler/codegen/common/Rules.h"
#include "compiler/codegen/common/Tree.h"
#include "compiler/codegen/gpu/Block.h"
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "dialects/mt/Compilation.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mtc;

// Ids that a thread, and a warp, loads at once; positions that it lists before it adds their updates; updates that it
// then loads at once, and for the rest of the list. The bits depend on none of these numbers.
constexpr int64_t idsPerThread = 16, idsAtOnce = idsPerThread * warpThreads, listed = 2 * idsAtOnce;
constexpr int64_t updatesAtOnce = 2 * warpThreads, fewUpdates = 16;
// Largest size of a warp's sums in workgroup memory, with completed left siblings; number of warps that fill a GPU.
constexpr int64_t maxSumBytes = 8 << 10, enoughWarps = 8 * usualMultiprocessors;

namespace {
// Division of the table. Group g of `groups`, a power of two, has rows g, g + groups, g + 2 groups ...: frequent ids
// are often small, and so they belong to different warps.
struct ScatterShape {
  int64_t entries, width; // of the table
  int64_t chunks;         // chunks of a row's columns
  int64_t levels;         // levels of the tree with left siblings
  int64_t groups, rows;   // rows: largest number of rows of a group

  explicit ScatterShape(mt::ScatterAddOp op)
      : entries(op.getType().getDimSize(0)), width(innerCount(op.getResult()) / entries),
        chunks(ceilDiv(width, warpThreads)), levels(llvm::Log2_64_Ceil(mt::Compilation(op).getShards())) {
    int64_t most = maxSumBytes / (4 * warpThreads * (1 + levels));
    int64_t wanted = std::max(ceilDiv(enoughWarps, chunks), ceilDiv(entries, most));
    auto power = [](int64_t value) { return static_cast<uint64_t>(value); };
    groups = static_cast<int64_t>(std::min(llvm::bit_ceil(power(wanted)), llvm::bit_floor(power(entries))));
    rows = ceilDiv(entries, groups);
  }
};

class BlockScatter {
public:
  BlockScatter(BlockKernel &kernel, mt::ScatterAddOp op);
  void run();

private:
  Value narrow(Value number) { return arith::TruncIOp::create(emit, i32, number); }
  Value wide(Value number) { return arith::ExtUIOp::create(emit, emit.getI64Type(), number); }
  // Address of the thread's sum of a row of the group.
  Value sumAt(Value row) { return emit.address(sums, f32, emit.add(emit.mul(row, warpThreads), kernel.thread)); }
  Value siblingAt(Value level, Value row) {
    Value line = emit.add(emit.mul(level, shape.rows), row);
    return emit.address(siblings, f32, emit.add(emit.mul(line, warpThreads), kernel.thread));
  }
  void forRows(llvm::function_ref<void(Value row)> body) {
    emit.loop(emit.integer(0), emit.integer(shape.rows), 1, body);
  }
  void sumShard(Value from, Value to);
  Value list(Value first, Value end, Value count);
  void addListed(Value count);
  void addSome(Value first, Value count, int64_t some);
  void finish();

  BlockKernel &kernel;
  Emitter &emit;
  ScatterShape shape;
  int64_t each; // ids per sample
  Type f32, i32;
  Value ids, updates;
  Value group, own, column; // of the block; of the thread, and clamped to the last column
  Value sums, siblings;     // in workgroup memory, as are the next two
  Value positions, rows;    // listed positions: i32 of the device, below 2^32; listed rows: i8 in the group
};
} // namespace

BlockScatter::BlockScatter(BlockKernel &kernel, mt::ScatterAddOp op)
    : kernel(kernel), emit(kernel.emit), shape(op), each(innerCount(op.getIds())), f32(emit.getF32Type()),
      i32(emit.getI32Type()), ids(kernel.argument(cast<BlockArgument>(op.getIds()).getArgNumber())),
      updates(kernel.argument(cast<BlockArgument>(op.getUpdates()).getArgNumber())),
      group(emit.div(kernel.tile, emit.integer(shape.chunks))),
      own(emit.add(emit.mul(emit.rem(kernel.tile, emit.integer(shape.chunks)), warpThreads), kernel.thread)),
      column(emit.min(own, emit.integer(shape.width - 1))), sums(kernel.allocateShared(f32, shape.rows * warpThreads)),
      siblings(kernel.allocateShared(f32, shape.levels * shape.rows * warpThreads)),
      positions(kernel.allocateShared(i32, listed)), rows(kernel.allocateShared(emit.getI8Type(), listed)) {}

// Appends the positions from `first` on, before `end`, whose ids select a row of the group to a list of `count`
// positions; returns the new number.
Value BlockScatter::list(Value first, Value end, Value count) {
  Emitter::Values at, row, named;
  Value last = emit.add(end, -1), any;
  for (int64_t i = 0; i < idsPerThread; ++i) {
    Value position = emit.add(first, emit.add(kernel.thread, i * warpThreads));
    Value id = emit.load(i32, emit.address(ids, i32, emit.min(position, last)));
    Value entry = entryOf(emit, id, shape.entries), groups = emit.integer(shape.groups);
    at.push_back(position);
    row.push_back(emit.div(entry, groups));
    named.push_back(both(emit, emit.less(position, end), emit.equal(emit.rem(entry, groups), group)));
    any = any ? Value(arith::OrIOp::create(emit, any, named.back())) : named.back();
  }
  auto append = [&] {
    Value below = narrow(emit.add(arith::ShLIOp::create(emit, emit.integer(1), kernel.thread), -1)), filled = count;
    for (int64_t i = 0; i < idsPerThread; ++i) {
      Value bits = kernel.ballot(named[i]);
      auto ones = [&](Value bits) { return wide(LLVM::CtPopOp::create(emit, i32, bits)); };
      Value index = emit.add(filled, ones(arith::AndIOp::create(emit, bits, below)));
      emit.when(named[i], [&] {
        emit.store(narrow(at[i]), emit.address(positions, i32, index));
        Type i8 = emit.getI8Type();
        emit.store(arith::TruncIOp::create(emit, i8, row[i]), emit.address(rows, i8, index));
      });
      filled = emit.add(filled, ones(bits));
    }
    return filled;
  };
  Value some = arith::CmpIOp::create(emit, arith::CmpIPredicate::ne, kernel.ballot(any), emit.zeros(i32));
  return choose(emit, some, append, count);
}

// Adds the updates at `some` positions of the list from `first` on to the sums, in order; positions from `count` on are
// ignored.
void BlockScatter::addSome(Value first, Value count, int64_t some) {
  Type i8 = emit.getI8Type();
  auto vectors = [&](Value base, Type element) {
    int64_t vectorWidth = maxAccessBytes / emit.bytes(element);
    Emitter::Values elements;
    for (int64_t i = 0; i < some; i += vectorWidth) {
      Value vector = LLVM::LoadOp::create(emit, VectorType::get({vectorWidth}, element),
                                          emit.address(base, element, first, i), maxAccessBytes);
      for (int64_t j = 0; j < vectorWidth; ++j)
        elements.push_back(emit.extract(vector, j));
    }
    return elements;
  };
  bool all = some == updatesAtOnce;
  Emitter::Values at = vectors(positions, i32), row = vectors(rows, i8), there, taken;
  for (int64_t i = 0; i < some; ++i) {
    there.push_back(all ? Value() : emit.less(emit.add(first, i), count));
    Value position = wide(all || !i ? at[i] : Value(arith::SelectOp::create(emit, there[i], at[i], at[0])));
    taken.push_back(emit.load(f32, emit.address(updates, f32, emit.add(emit.mul(position, shape.width), column))));
  }
  auto add = [&](int64_t i) {
    Value sum = sumAt(wide(row[i]));
    emit.store(arith::AddFOp::create(emit, emit.load(f32, sum), taken[i]), sum);
  };
  if (!all) {
    for (int64_t i = 0; i < some; ++i)
      emit.when(there[i], [&] { add(i); });
    return;
  }
  // If all positions select one row, its sum stays in a register.
  Value differs;
  for (int64_t i = 0; i < some; i += warpThreads) {
    Value other = emit.load(i8, emit.address(rows, i8, emit.add(first, kernel.thread), i));
    Value unequal = arith::CmpIOp::create(emit, arith::CmpIPredicate::ne, other, row[0]);
    differs = differs ? Value(arith::OrIOp::create(emit, differs, unequal)) : unequal;
  }
  Value isOne = emit.equal(kernel.ballot(differs), emit.zeros(i32));
  emit.when(
      isOne,
      [&] {
        Value sum = sumAt(wide(row[0])), total = emit.load(f32, sum);
        for (Value value : taken)
          total = arith::AddFOp::create(emit, total, value);
        emit.store(total, sum);
      },
      [&] {
        for (int64_t i = 0; i < some; ++i)
          add(i);
      });
}

void BlockScatter::addListed(Value count) {
  kernel.warpBarrier(); // the list is complete
  Value whole = emit.sub(count, emit.rem(count, emit.integer(updatesAtOnce)));
  emit.loop(emit.integer(0), whole, updatesAtOnce, [&](Value first) { addSome(first, count, updatesAtOnce); });
  emit.loop(whole, count, fewUpdates, [&](Value first) { addSome(first, count, fewUpdates); });
  kernel.warpBarrier(); // the list has been read and may be overwritten
}

void BlockScatter::sumShard(Value from, Value to) {
  forRows([&](Value row) { emit.store(emit.zeros(f32), sumAt(row)); });
  Value first = emit.mul(from, each), end = emit.mul(to, each), zero = emit.integer(0);
  emit.loop(first, end, idsAtOnce, zero, [&](Value position, ValueRange carried) {
    Value count = list(position, end, carried[0]);
    Value isFull = emit.less(emit.integer(listed - idsAtOnce), count);
    Value isLast = emit.less(emit.add(end, -1), emit.add(position, idsAtOnce));
    auto addAll = [&] {
      addListed(count);
      return zero;
    };
    return Emitter::Values{choose(emit, arith::OrIOp::create(emit, isFull, isLast), addAll, count)};
  });
}

// A thread writes its column of all rows, so adjacent threads write adjacent elements.
void BlockScatter::finish() {
  emit.when(emit.less(own, emit.integer(shape.width)), [&] {
    forRows([&](Value row) {
      Value entry = emit.add(emit.mul(row, shape.groups), group);
      emit.when(emit.less(entry, emit.integer(shape.entries)), [&] {
        Value to = emit.address(kernel.result(0), f32, emit.add(emit.mul(entry, shape.width), column));
        emit.store(emit.load(f32, sumAt(row)), to);
      });
    });
  });
}

void BlockScatter::run() {
  auto shard = [&](Value from, Value to) { sumShard(from, to); };
  auto combine = [&](Value level) {
    forRows([&](Value row) {
      Value sum = sumAt(row), left = emit.load(f32, siblingAt(level, row));
      emit.store(arith::AddFOp::create(emit, left, emit.load(f32, sum)), sum);
    });
  };
  // The root has no sibling.
  auto push = [&](Value level) {
    emit.when(emit.less(level, emit.integer(shape.levels)),
              [&] { forRows([&](Value row) { emit.store(emit.load(f32, sumAt(row)), siblingAt(level, row)); }); });
  };
  emitTreeInMemory(emit, shardsOf(kernel), shard, combine, push);
  finish();
}

GpuGrid mtc::scatterAddGpuGrid(plan::KernelOp op, int64_t) {
  ScatterShape shape(op.getBody().front().getTerminator()->getOperand(0).getDefiningOp<mt::ScatterAddOp>());
  return {warpThreads, 0, shape.groups * shape.chunks, 0, 0};
}

LogicalResult mtc::emitBlockScatterAdd(BlockKernel &kernel) {
  BlockScatter(kernel, kernel.yields()[0].getDefiningOp<mt::ScatterAddOp>()).run();
  return success();
}
