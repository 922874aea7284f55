// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/gpu/Product.h"

using namespace mlir;
using namespace mtc;

ProductBlock::ProductBlock(BlockKernel &kernel, const ProductTile &tile)
    : kernel(kernel), emit(kernel.emit), tile(tile) {
  left = kernel.share(emit.getF32Type(), tile.depth * stride(tile.rows));
  right = kernel.share(emit.getF32Type(), tile.depth * stride(tile.columns));
  int64_t across = tile.columns / tile.perColumn;
  row = emit.div(kernel.thread, emit.integer(across));
  column = emit.rem(kernel.thread, emit.integer(across));
}

Emitter::Values ProductBlock::zeros() { return Emitter::Values(count(), emit.zeros(emit.getF32Type())); }

// A thread's sums lie apart, so that neighbouring threads have neighbouring columns.
std::pair<Value, Value> ProductBlock::placeOf(int64_t index) {
  int64_t down = tile.rows / tile.perRow, across = tile.columns / tile.perColumn;
  return {emit.add(row, index / tile.perColumn * down), emit.add(column, index % tile.perColumn * across)};
}

// Copies positions [from, from + depth) of k of all lines, with zeros from `to` on.
void ProductBlock::fill(Side side, Value place, int64_t lines, Value from, Value to) {
  Type f32 = emit.getF32Type();
  kernel.forThreads(lines * tile.depth, [&](Value index) {
    int64_t fast = side.depthFirst ? tile.depth : lines;
    Value inner = emit.rem(index, emit.integer(fast)), outer = emit.div(index, emit.integer(fast));
    Value line = side.depthFirst ? outer : inner, k = side.depthFirst ? inner : outer;
    Value position = emit.add(from, k);
    Value taken = choose(emit, emit.less(position, to), [&] { return side.load(line, position); }, emit.zeros(f32));
    emit.store(taken, emit.address(place, f32, emit.add(emit.mul(k, stride(lines)), line)));
  });
}

Emitter::Values ProductBlock::add(Side leftSide, Side rightSide, Value from, Value to, ValueRange sums) {
  Type f32 = emit.getF32Type();
  int64_t down = tile.rows / tile.perRow, across = tile.columns / tile.perColumn;
  return emit.loop(from, to, tile.depth, sums, [&](Value k, ValueRange carried) {
    kernel.barrier();
    fill(leftSide, left, tile.rows, k, to);
    fill(rightSide, right, tile.columns, k, to);
    kernel.barrier();
    Emitter::Values next(carried);
    for (int64_t step = 0; step < tile.depth; ++step) {
      Value leftLine = emit.address(left, f32, row, step * stride(tile.rows));
      Value rightLine = emit.address(right, f32, column, step * stride(tile.columns));
      SmallVector<Value> a, b;
      for (int64_t i = 0; i < tile.perRow; ++i)
        a.push_back(emit.load(f32, emit.address(leftLine, f32, i * down)));
      for (int64_t j = 0; j < tile.perColumn; ++j)
        b.push_back(emit.load(f32, emit.address(rightLine, f32, j * across)));
      for (auto [index, sum] : llvm::enumerate(next))
        sum = emit.fma(a[index / tile.perColumn], b[index % tile.perColumn], sum);
    }
    return next;
  });
}
