// SPDX-License-Identifier: Apache-2.0
//
// mt-shift-variances: sums of squares of differences from a mean over the batch, as in batch normalization, without a
// second pass over the images. The pass that adds up the mean squares the differences from the sample's first pixel f.
// When the mean m is known, each sample's sum of n pixels is corrected:
//
//   sum (x - m)^2   =   sum (x - f)^2 + d (2 sum (x - f) + n d)   where   d = f - m = (sum x - n m - sum (x - f)) / n
//
// The pixel is of the size of the others, so nothing cancels that a sum of differences from the mean would keep.
#include "compiler/Passes.h"
#include "compiler/differentiate/Simplify.h"
#include "dialects/mt/Expr.h"
#include "dialects/mt/Types.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_SHIFTVARIANCES
#include "compiler/Passes.h.inc"

namespace {

using mt::Expr;
using mt::tensorOf;

// Whether the op is a sum over all axes of a sample but the last.
bool sumsPixels(mt::ReduceOp op) {
  int64_t rank = tensorOf(op.getOperand()).getRank();
  return op.getKind() == mt::Reduction::sum && mt::isSplit(op.getOperand().getType()) && rank > 2 &&
         op.getDims() == ArrayRef(llvm::to_vector(llvm::seq<int64_t>(1, rank - 1)));
}

// The stored value: of 16 bits, if the value is extended from one.
Value storedOf(Value value) {
  auto wide = value.getDefiningOp<mt::CastOp>();
  return wide && mt::isHalf(tensorOf(wide.getOperand()).getElementType()) ? wide.getOperand() : value;
}

// The sum of the images over their pixels from which `mean` is computed; null: the mean is of something else.
mt::ReduceOp sumOf(Value mean, Value images, ArrayRef<int64_t> dims) {
  auto quotient = mean.getDefiningOp<mt::DivOp>();
  auto all = quotient ? quotient.getLhs().getDefiningOp<mt::ReduceOp>() : mt::ReduceOp();
  auto each =
      all && all.getDims() == ArrayRef<int64_t>{0} ? all.getOperand().getDefiningOp<mt::ReduceOp>() : mt::ReduceOp();
  bool found = each && sumsPixels(each) && each.getDims() == dims && storedOf(each.getOperand()) == storedOf(images);
  return found ? each : mt::ReduceOp();
}

void shift(mt::ReduceOp squares) {
  auto square = squares.getOperand().getDefiningOp<mt::SquareOp>();
  auto difference = square ? square.getOperand().getDefiningOp<mt::SubOp>() : mt::SubOp();
  if (!sumsPixels(squares) || !difference || mt::isSplit(difference.getRhs().getType()))
    return;
  Value images = difference.getLhs(), mean = difference.getRhs();
  RankedTensorType type = tensorOf(images);
  SmallVector<int64_t> dims(squares.getDims());
  mt::ReduceOp sum =
      type == difference.getType() && tensorOf(mean).getRank() == 1 ? sumOf(mean, images, dims) : mt::ReduceOp();
  if (!sum)
    return;
  OpBuilder builder(squares);
  Location location = squares.getLoc();
  SmallVector<int64_t> starts(type.getRank() - 1, 0), sizes(type.getRank() - 1, 1);
  sizes.back() = type.getShape().back();
  Value first = mt::SliceOp::create(builder, location, storedOf(images), starts, sizes, ArrayRef<int64_t>{});
  if (!tensorOf(first).getElementType().isF32())
    first = mt::CastOp::create(builder, location, tensorOf(first).clone(builder.getF32Type()), first);
  Expr shifted(builder, location, mt::SubOp::create(builder, location, images, first));
  auto add = [&](Value value) {
    return Expr(builder, location, mt::ReduceOp::create(builder, location, mt::Reduction::sum, value, dims));
  };
  int64_t pixels = mt::elementsPerRow(type) / type.getShape().back();
  // The mean comes first, so that each of these ops waits for it: the kernel that sums the pixels has none of them.
  Expr sums = add(shifted.value()), whole = Expr(builder, location, mean) * pixels;
  Expr distance = (Expr(builder, location, sum) - whole - sums) / pixels;
  Expr corrected = add(mt::square(shifted).value()) + distance * (distance * pixels + sums + sums);
  squares.replaceAllUsesWith(corrected.value());
}

struct ShiftVariances : impl::ShiftVariancesBase<ShiftVariances> {
  using ShiftVariancesBase::ShiftVariancesBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<mt::ProgramOp>()) {
      for (auto reduce : llvm::make_early_inc_range(program.getBody().front().getOps<mt::ReduceOp>()))
        shift(reduce);
      eraseUnused(program.getBody().front());
    }
  }
};

} // namespace
} // namespace mtc
