// SPDX-License-Identifier: Apache-2.0
//
// mt-add-before-split: a product whose last axis is split, as attention splits it into heads, gets its bias before the
// split. So the bias is part of the kernel of the product, whatever the order in which the framework has the two.
#include "compiler/Passes.h"
#include "compiler/recognize/Match.h"
#include "dialects/mt/Types.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_ADDBEFORESPLIT
#include "compiler/Passes.h.inc"

namespace {

using mt::tensorOf;

// Adds `bias` [h, k] to the product [..., h * k] that `split` has as [..., h, k].
void addBefore(mt::AddOp add, Value split, Value bias) {
  auto reshape = split.getDefiningOp<mt::ReshapeOp>();
  auto product = reshape ? reshape.getOperand().getDefiningOp<mt::MatmulOp>() : mt::MatmulOp();
  if (!product || mt::isSplit(tensorOf(bias)) || split.getType() != add.getType())
    return;
  RankedTensorType whole = tensorOf(product.getResult()), parts = tensorOf(split), given = tensorOf(bias);
  ArrayRef<int64_t> last = given.getShape();
  int64_t lead = whole.getRank() - 1;
  bool splitsLast = parts.getRank() == lead + given.getRank() && given.getRank() > 1 &&
                    parts.getShape().take_front(lead) == whole.getShape().take_front(lead) &&
                    parts.getShape().drop_front(lead) == last && given.getNumElements() == whole.getShape().back();
  if (!splitsLast)
    return;
  OpBuilder builder(add);
  Location location = add.getLoc();
  Value line = mt::ReshapeOp::create(builder, location, given.clone({given.getNumElements()}), bias);
  Value sum = mt::AddOp::create(builder, location, whole, product.getResult(), line);
  replaceMatched(add, mt::ReshapeOp::create(builder, location, parts, sum));
}

struct AddBeforeSplit : impl::AddBeforeSplitBase<AddBeforeSplit> {
  void runOnOperation() override {
    forEach<mt::AddOp>(getOperation(), [](mt::AddOp add) {
      Value lhs = add.getLhs(), rhs = add.getRhs();
      if (lhs.getDefiningOp<mt::ReshapeOp>() && lhs.getType() == add.getType())
        return addBefore(add, lhs, rhs);
      addBefore(add, rhs, lhs);
    });
  }
};

} // namespace
} // namespace mtc
