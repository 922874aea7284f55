// SPDX-License-Identifier: Apache-2.0
//
// Kernels that accompany library calls. `sizes` are i64 numbers in device memory, so that one kernel serves all calls.
#include "compiler/codegen/gpu/CallKernels.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "compiler/codegen/gpu/Tree.h"

using namespace mlir;
using namespace mtc;

// Sets rows after the valid ones to zero; sizes: elements of a row. The segment counts the elements of all rows.
void mtc::emitClearRows(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  Value from = emit.mul(kernel.tile, elementwiseTile), to = emit.min(emit.add(from, elementwiseTile), kernel.elements);
  Value valid = emit.mul(kernel.rows(), emit.loadInteger(kernel.pointers[2], 0));
  kernel.forThreads(from, to, [&](Value index) {
    emit.when(emit.less(emit.sub(valid, emit.integer(1)), index), [&] {
      emit.store(emit.zeros(emit.getF32Type()), emit.address(kernel.pointers[0], emit.getF32Type(), index));
    });
  });
}

// Adds the results of shards, which are stored one after the other, along the tree.
void mtc::emitSumShards(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  Type f32 = emit.getF32Type();
  Value from = emit.mul(kernel.tile, elementwiseThreads), index = emit.add(from, kernel.thread);
  emit.when(emit.less(index, kernel.elements), [&] {
    auto shard = [&](Value begin, Value) {
      Value number = emit.div(begin, emit.integer(kernel.shardRows));
      Value element = emit.add(emit.mul(number, kernel.elements), index);
      return Emitter::Values{emit.load(f32, emit.address(kernel.pointers[0], f32, element))};
    };
    emitBlockTree(kernel, 1, shard,
                  [&](ValueRange root) { emit.store(root[0], emit.address(kernel.pointers[1], f32, index)); });
  });
}

// Transposes a matrix, one tile at a time, through workgroup memory; sizes: its rows and columns. The segment counts
// tiles.
void mtc::emitTransposeTiles(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  Type f32 = emit.getF32Type();
  constexpr int64_t size = transposeSide;
  Value rows = emit.loadInteger(kernel.pointers[2], 0), columns = emit.loadInteger(kernel.pointers[2], 1);
  Value across = emit.ceilDiv(columns, size);
  Value firstRow = emit.mul(emit.div(kernel.tile, across), size);
  Value firstColumn = emit.mul(emit.rem(kernel.tile, across), size);
  // One extra element per row puts adjacent rows into different banks.
  Value memory = kernel.allocateShared(f32, size * (size + 1));
  auto at = [&](Value line, Value column) {
    return emit.address(memory, f32, emit.add(emit.mul(line, size + 1), column));
  };
  auto forElements = [&](Value height, Value width, Value top, Value left,
                         llvm::function_ref<void(Value, Value, Value)> each) {
    kernel.forThreads(size * size, [&](Value index) {
      Value i = emit.div(index, emit.integer(size)), j = emit.rem(index, emit.integer(size));
      Value row = emit.add(top, i), column = emit.add(left, j);
      emit.when(both(emit, emit.less(row, height), emit.less(column, width)),
                [&] { each(i, j, emit.add(emit.mul(row, width), column)); });
    });
  };
  forElements(rows, columns, firstRow, firstColumn, [&](Value i, Value j, Value index) {
    emit.store(emit.load(f32, emit.address(kernel.pointers[0], f32, index)), at(i, j));
  });
  kernel.barrier();
  forElements(columns, rows, firstColumn, firstRow, [&](Value i, Value j, Value index) {
    emit.store(emit.load(f32, at(j, i)), emit.address(kernel.pointers[1], f32, index));
  });
}
