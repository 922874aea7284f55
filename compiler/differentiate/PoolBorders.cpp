// SPDX-License-Identifier: Apache-2.0
//
// mt-pool-borders: a border of zeros around images that are nowhere negative becomes the padding of the max pool that
// reads it, so that neither the images with their border nor the gradient of these are stored:
//
//   pool max (pad (relu x))   ->   pool max (relu x) padding = ...
//
// The maximum is the same, because each window has an element of the images, and none is below zero. The gradient may
// go to another element only where all are zero, and there the derivative of relu is zero.
#include "compiler/Passes.h"
#include "dialects/mt/MtDialect.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_POOLBORDERS
#include "compiler/Passes.h.inc"

namespace {

bool isSome(int64_t elements) { return elements != 0; }

void absorbBorder(mt::PoolOp pool) {
  auto pad = pool.getInput().getDefiningOp<mt::PadOp>();
  if (pool.getKind() != mt::Reduction::max || !pad || !pad.getOperand().getDefiningOp<mt::ReluOp>() ||
      !pad.getValue().isZero() || llvm::any_of(pad.getInterior(), isSome))
    return;
  ArrayRef<int64_t> low = pad.getLow(), high = pad.getHigh();
  if (low[2] != 0 || high[2] != 0 || llvm::any_of(pool.getPadding(), isSome))
    return;
  for (int axis : {0, 1})
    if (int64_t taps = pool.getWindow()[axis]; low[axis] >= taps || high[axis] >= taps)
      return; // a window would have no element of the images
  pool.getInputMutable().assign(pad.getOperand());
  pool.setPadding({low[0], high[0], low[1], high[1]});
  if (pad->use_empty())
    pad->erase();
}

struct PoolBorders : impl::PoolBordersBase<PoolBorders> {
  using PoolBordersBase::PoolBordersBase;

  void runOnOperation() override {
    for (auto model : getOperation().getOps<mt::ModelOp>())
      for (auto pool : llvm::make_early_inc_range(model.getBody().front().getOps<mt::PoolOp>()))
        absorbBorder(pool);
  }
};

} // namespace
} // namespace mtc
