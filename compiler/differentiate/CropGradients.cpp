// SPDX-License-Identifier: Apache-2.0
//
// mt-crop-gradients: if only the first rows or columns of a product over the batch are read, slices an operand of the
// product, which its kernel reads in place, instead of the result:
//
//   slice (left^T x right)   ->   (slice left)^T x right   or   left^T x (slice right)
#include "compiler/Passes.h"
#include "compiler/differentiate/Simplify.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Types.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_CROPGRADIENTS
#include "compiler/Passes.h.inc"

namespace {

using mt::tensorOf;

// Slice of the first `size` elements of each row.
Value firstOf(OpBuilder &builder, Value side, int64_t size) {
  SmallVector<int64_t> sizes(tensorOf(side).getShape().drop_front());
  if (sizes.back() == size)
    return side;
  sizes.back() = size;
  SmallVector<int64_t> starts(sizes.size(), 0);
  return mt::SliceOp::create(builder, side.getLoc(), side, starts, sizes, ArrayRef<int64_t>{});
}

bool isFirstPart(mt::SliceOp slice) {
  return slice.getStrides().empty() && llvm::all_of(slice.getStarts(), [](int64_t start) { return start == 0; });
}

bool isOverBatch(mt::MatmulOp product) {
  return product.getTransposeA() && !product.getTransposeB() && mt::isSplit(product.getLhs().getType()) &&
         mt::isSplit(product.getRhs().getType());
}

// The product contracts the batch axis, or a sum over the batch adds the products of the samples.
void crop(mt::SliceOp slice) {
  Value whole = slice.getOperand();
  auto sum = whole.getDefiningOp<mt::ReduceOp>();
  auto product = (sum ? sum.getOperand() : whole).getDefiningOp<mt::MatmulOp>();
  bool isSum = !sum || (sum.getKind() == mt::Reduction::sum && sum.getDims() == ArrayRef<int64_t>{0});
  if (!product || !isOverBatch(product) || !isSum || !isFirstPart(slice) || tensorOf(whole).getRank() != 2 ||
      mt::isSplit(whole.getType()) || !whole.hasOneUse() || !product->hasOneUse())
    return;
  OpBuilder builder(slice);
  Value left = firstOf(builder, product.getLhs(), slice.getSizes()[0]),
        right = firstOf(builder, product.getRhs(), slice.getSizes()[1]);
  auto part = mt::MatmulOp::create(builder, product.getLoc(), left, right, true, false);
  mt::setPrecision(part, mt::precisionOf(product));
  Value result = part;
  if (sum)
    result = mt::ReduceOp::create(builder, sum.getLoc(), sum.getKind(), result, sum.getDims());
  slice.replaceAllUsesWith(result);
  slice.erase();
}

struct CropGradients : impl::CropGradientsBase<CropGradients> {
  using CropGradientsBase::CropGradientsBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<mt::ProgramOp>()) {
      for (auto slice : llvm::make_early_inc_range(program.getBody().front().getOps<mt::SliceOp>()))
        crop(slice);
      simplify(program);
    }
  }
};

} // namespace
} // namespace mtc
