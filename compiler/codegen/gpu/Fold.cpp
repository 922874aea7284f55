// SPDX-License-Identifier: Apache-2.0
//
// Reduces the values of the threads of a row by halves: first the lanes of each warp, then the warps.
#include "compiler/codegen/common/Rules.h"
#include "compiler/codegen/gpu/BlockRows.h"

using namespace mlir;
using namespace mtc;

// Reduces the first `lanes` lanes of a warp, or each group of `lanes` lanes; every lane has the result.
Emitter::Values BlockRows::foldLanes(ValueRange values, int64_t lanes, Combine combine) {
  Emitter::Values folded(values);
  for (int64_t half = lanes / 2; half >= 1; half /= 2) {
    Value upper = emit.equal(emit.rem(emit.div(kernel.thread, emit.integer(half)), emit.integer(2)), emit.integer(1));
    Emitter::Values low, high;
    for (Value own : folded) {
      Value other = kernel.shuffle(own, half);
      low.push_back(arith::SelectOp::create(emit, upper, other, own));
      high.push_back(arith::SelectOp::create(emit, upper, own, other));
    }
    folded = combine(low, high);
  }
  return folded;
}

Emitter::Values BlockRows::fold(ValueRange values, Combine combine) {
  Emitter::Values folded = foldLanes(values, warpThreads, combine);
  int64_t warps = kernel.groupThreads() / warpThreads;
  if (warps == 1)
    return folded;
  Value warp = emit.div(kernel.thread, emit.integer(warpThreads)), lane = emit.rem(kernel.thread, emit.integer(warps));
  SmallVector<Value> lines;
  for (Value value : folded) {
    lines.push_back(kernel.allocateShared(value.getType(), warps));
    emit.when(emit.equal(emit.rem(kernel.thread, emit.integer(warpThreads)), emit.integer(0)),
              [&, value = value] { emit.store(value, emit.address(lines.back(), value.getType(), warp)); });
  }
  kernel.barrier();
  for (auto [value, line] : llvm::zip_equal(folded, lines))
    value = emit.load(value.getType(), emit.address(line, value.getType(), lane));
  return foldLanes(folded, warps, combine);
}

Emitter::Values BlockRows::fold(ArrayRef<mt::ReduceOp> reductions, ValueRange sums) {
  return fold(sums, [&](ValueRange low, ValueRange high) {
    Emitter::Values folded;
    for (auto [i, reduce] : llvm::enumerate(reductions))
      folded.push_back(mtc::combine(emit, mt::ReduceOp(reduce).getKind(), low[i], high[i]));
    return folded;
  });
}

// Index of the first largest element, or of the first NaN; threads may visit elements in any order.
Value BlockRows::search(mt::ArgmaxOp op) {
  Value operand = op.getOperand(), none = arith::ConstantOp::create(emit, emit.getI32IntegerAttr(INT32_MAX));
  auto better = [&](ValueRange a, ValueRange b) {
    Value keeps = beats(emit, a[0], b[0]), before = arith::CmpIOp::create(emit, arith::CmpIPredicate::slt, b[1], a[1]);
    Value same = arith::SelectOp::create(emit, keeps, emit.zeros(emit.getI1Type()), before);
    Value takes = arith::OrIOp::create(emit, beats(emit, b[0], a[0]), same);
    return Emitter::Values{arith::SelectOp::create(emit, takes, b[0], a[0]),
                           arith::SelectOp::create(emit, takes, b[1], a[1])};
  };
  Value least = identityOf(emit, mt::Reduction::max, elementOf(operand));
  Emitter::Values best = kernel.forThreads(innerCount(operand), {least, none}, [&](Value index, ValueRange best) {
    Value number = arith::TruncIOp::create(emit, emit.getI32Type(), index);
    return better(best, {at(operand, index), number});
  });
  return fold(best, better)[1];
}
