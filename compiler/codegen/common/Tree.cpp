// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/common/Tree.h"
#include "dialects/mt/Compilation.h"

using namespace mlir;
using namespace mtc;

Shards mtc::shardsOf(Kernel &kernel) {
  Emitter &emit = kernel.emit;
  Value rows = kernel.rows();
  if (kernel.fast)
    return {rows, emit.max(rows, emit.integer(1)), emit.min(rows, emit.integer(1)), 1};
  int64_t levels = llvm::Log2_64_Ceil(mt::Compilation(kernel.op).getShards()) + 1;
  return {rows, emit.integer(kernel.shardRows), emit.ceilDiv(rows, kernel.shardRows), levels};
}

// Number of trailing zeros of `value`, an i64 that is not zero.
static Value trailingZeros(Emitter &emit, Value value) {
  return LLVM::CountTrailingZerosOp::create(emit, emit.getI64Type(), value, /*is_zero_poison=*/true);
}

static Value rowsEnd(Emitter &emit, const Shards &shards, Value shard) {
  return emit.min(emit.mul(emit.add(shard, 1), shards.size), shards.rows);
}

static Value hasBit(Emitter &emit, Value value, Value bit) {
  Value shifted = arith::ShRUIOp::create(emit, value, bit);
  return arith::TruncIOp::create(emit, emit.getI1Type(), shifted);
}

void mtc::emitTree(Emitter &emit, const Shards &shards, Value first, Value all, ValueRange zeros, Siblings siblings,
                   llvm::function_ref<Emitter::Values(Value, Value)> shard,
                   llvm::function_ref<void(ValueRange)> finish) {
  Emitter::Values last = emit.loop(emit.integer(0), shards.count, 1, zeros, [&](Value index, ValueRange) {
    Emitter::Values sums = shard(emit.mul(index, shards.size), rowsEnd(emit, shards, index));
    Value done = emit.add(emit.add(first, index), 1);
    Value level = trailingZeros(emit, done);
    sums = emit.loop(emit.integer(0), level, 1, sums,
                     [&](Value low, ValueRange carried) { return siblings.add(low, carried); });
    emit.when(emit.less(done, all), [&] { siblings.save(level, sums); });
    return sums;
  });
  // Combines the remaining nodes on the stack, from the last node on.
  emit.when(emit.equal(emit.add(first, shards.count), all), [&] {
    Value low = emit.add(trailingZeros(emit, emit.max(all, emit.integer(1))), 1);
    finish(emit.loop(low, emit.integer(shards.levels), 1, last, [&](Value level, ValueRange carried) {
      auto choice = scf::IfOp::create(emit, TypeRange(carried), hasBit(emit, all, level), /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(emit);
      emit.setInsertionPointToEnd(choice.thenBlock());
      scf::YieldOp::create(emit, siblings.add(level, carried));
      emit.setInsertionPointToEnd(choice.elseBlock());
      scf::YieldOp::create(emit, carried);
      return Emitter::Values(choice.getResults());
    }));
  });
}

void mtc::emitTree(Emitter &emit, const Shards &shards, Value first, Value all, Value stack, int64_t vectors,
                   llvm::function_ref<Emitter::Values(Value, Value)> shard,
                   llvm::function_ref<void(ValueRange)> finish) {
  Type f32 = emit.realType();
  auto levelAt = [&](Value level) { return emit.address(stack, f32, emit.mul(level, vectors * lanes)); };
  auto add = [&](Value level, ValueRange sums) {
    Value left = levelAt(level);
    Emitter::Values nodes;
    for (auto [vector, sum] : llvm::enumerate(sums)) {
      Value sibling = emit.loadLanes(f32, emit.address(left, f32, vector * lanes));
      nodes.push_back(arith::AddFOp::create(emit, sibling, sum));
    }
    return nodes;
  };
  auto save = [&](Value level, ValueRange sums) {
    Value slot = levelAt(level);
    for (auto [vector, sum] : llvm::enumerate(sums))
      emit.storeLanes(sum, emit.address(slot, f32, vector * lanes));
  };
  Emitter::Values zeros(vectors, emit.zeros(emit.vectorOf(f32)));
  emitTree(emit, shards, first, all, zeros, {add, save}, shard, finish);
}

void mtc::emitTreeInMemory(Emitter &emit, const Shards &shards, llvm::function_ref<void(Value, Value)> shard,
                           llvm::function_ref<void(Value)> combine, llvm::function_ref<void(Value)> push) {
  emit.loop(emit.integer(0), shards.count, 1, [&](Value index) {
    shard(emit.mul(index, shards.size), rowsEnd(emit, shards, index));
    Value level = trailingZeros(emit, emit.add(index, 1));
    emit.loop(emit.integer(0), level, 1, [&](Value low) { combine(low); });
    push(level);
  });
  Value first = emit.add(trailingZeros(emit, emit.max(shards.count, emit.integer(1))), 1);
  emit.loop(first, emit.integer(shards.levels), 1,
            [&](Value level) { emit.when(hasBit(emit, shards.count, level), [&] { combine(level); }); });
}
