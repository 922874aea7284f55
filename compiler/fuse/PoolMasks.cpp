// SPDX-License-Identifier: Apache-2.0
//
// A max pool after a relu. The gradient of the pool is nonzero only at elements that are the maximum of their window.
// At these elements the mask of the relu equals the mask of the pool's result. So the mask can be applied to the
// gradient of the pool's result instead, which is smaller, and which the convolution that computes it has in registers.
#include "compiler/fuse/Computations.h"
#include "compiler/fuse/Prepare.h"

namespace mtc {

using namespace mlir;

static bool isZero(Value value) {
  SplatElementsAttr splat = mt::splatOf(value);
  return splat && splat.getElementType().isF32() && splat.getSplatValue<APFloat>().isPosZero() &&
         cast<RankedTensorType>(value.getType()).getRank() == 0;
}

// The first max pool in the program with the operand and the attributes of `gradient`. Attributes are compared by
// value, because a default may be present or omitted.
static mt::PoolOp poolOf(mt::PoolGradientOp gradient) {
  Operation *first = gradient;
  for (Operation *user : gradient.getInput().getUsers())
    if (auto pool = dyn_cast<mt::PoolOp>(user);
        pool && pool.getKind() == gradient.getKind() && pool.getWindow() == gradient.getWindow() &&
        pool.getStrides() == gradient.getStrides() && pool.getPadding() == gradient.getPadding() &&
        pool->isBeforeInBlock(first))
      first = pool;
  return dyn_cast<mt::PoolOp>(first);
}

// select(x > 0, pool_gradient(dy, x), 0) becomes pool_gradient(select(pool(x) > 0, dy, 0), x).
static void maskBefore(mt::SelectOp op) {
  auto compare = op.getCondition().getDefiningOp<mt::CompareOp>();
  auto gradient = op.getLhs().getDefiningOp<mt::PoolGradientOp>();
  if (!compare || !gradient || !gradient->hasOneUse() || gradient.getKind() != mt::Reduction::max)
    return;
  if (compare.getKind() != mt::Compare::gt || truncated(compare.getLhs()) != truncated(gradient.getInput()) ||
      !isZero(compare.getRhs()) || !isZero(op.getRhs()))
    return;
  mt::PoolOp pool = poolOf(gradient);
  if (!pool)
    return;
  OpBuilder builder(gradient);
  Value zero = builder.clone(*op.getRhs().getDefiningOp())->getResult(0);
  Value mask = mt::CompareOp::create(builder, compare.getLoc(), mt::Compare::gt, pool.getResult(), zero);
  Value incoming = gradient.getGradient();
  if (auto type = cast<RankedTensorType>(incoming.getType()); mt::isHalf(type.getElementType()))
    incoming = mt::CastOp::create(builder, op.getLoc(), type.clone(builder.getF32Type()), incoming);
  Value masked = mt::SelectOp::create(builder, op.getLoc(), mask, incoming, zero);
  gradient.getGradientMutable().assign(masked);
  op.getResult().replaceAllUsesWith(gradient.getResult());
  op->erase();
}

void masksBeforePools(mt::ProgramOp program) {
  for (auto op : llvm::make_early_inc_range(program.getBody().front().getOps<mt::SelectOp>()))
    maskBefore(op);
}

} // namespace mtc
