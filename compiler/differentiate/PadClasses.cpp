// SPDX-License-Identifier: Apache-2.0
//
// mt-pad-classes: pads logits to a multiple of 8 classes, or of 64 if there are many, so that GPU kernels read the rows
// of the logits and of their gradient in full accesses (docs/ir.md, "Classes that pad logits").
#include "compiler/Passes.h"
#include "compiler/differentiate/ClassLogits.h"
#include "compiler/differentiate/Limits.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Types.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_PADCLASSES
#include "compiler/Passes.h.inc"

namespace {

using mt::tensorOf;

// Elements of 16 bits in an access of 16 bytes, and in a cache line of a GPU. Rows of `manyClasses` or more are
// multiples of a cache line. For fewer than `fewestClasses` the copy of an operand costs more than it saves.
constexpr int64_t accessNumbers = 8, lineNumbers = 64, manyClasses = 1024, fewestClasses = 256;

// Pads a value without a batch axis with `added` elements at the end of an axis.
Value padded(OpBuilder &builder, Value value, int64_t axis, int64_t added, float with) {
  SmallVector<int64_t> low(tensorOf(value).getRank(), 0), high = low;
  high[axis] = added;
  return mt::PadOp::create(builder, value.getLoc(), value, low, high, ArrayRef<int64_t>{}, APFloat(with));
}

// The logits with `added` more classes of -infinity, which add nothing to a softmax or to its gradient.
Value withMoreClasses(mt::MatmulOp product, Value logits, int64_t added) {
  OpBuilder builder(product.getContext());
  builder.setInsertionPointAfterValue(logits);
  Location location = product.getLoc();
  int64_t classes = tensorOf(logits).getShape().back();
  Value matrix = padded(builder, product.getRhs(), product.getTransposeB() ? 0 : 1, added, 0);
  Value wide = mt::MatmulOp::create(builder, location, product.getLhs(), matrix, false, product.getTransposeB());
  Value bias;
  if (auto add = logits.getDefiningOp<mt::AddOp>()) {
    bias = add.getLhs() == product.getResult() ? add.getRhs() : add.getLhs();
  } else {
    auto type = RankedTensorType::get({classes}, cast<RankedTensorType>(product.getType()).getElementType());
    bias = mt::ConstantOp::create(builder, location, type,
                                  DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), 0)));
  }
  return mt::AddOp::create(builder, location, wide,
                           padded(builder, bias, 0, added, -std::numeric_limits<float>::infinity()));
}

struct PadClasses : impl::PadClassesBase<PadClasses> {
  using PadClassesBase::PadClassesBase;

  void runOnOperation() override {
    if (!mt::Compilation(getOperation()).isHalf())
      return;
    for (auto model : getOperation().getOps<mt::ModelOp>()) {
      setLimits(model); // before padding, so that labels are limited to the model's own classes
      for (auto product : llvm::make_early_inc_range(model.getBody().front().getOps<mt::MatmulOp>()))
        pad(product);
    }
  }

private:
  static void pad(mt::MatmulOp product) {
    Value logits = logitsOf(product);
    if (!logits || mt::precisionOf(product))
      return;
    int64_t classes = tensorOf(logits).getShape().back();
    int64_t all = llvm::alignTo(classes, classes < manyClasses ? accessNumbers : lineNumbers);
    SmallVector<Operation *> criteria = criteriaOf(logits);
    bool ofLabels = llvm::none_of(
        criteria, [](Operation *op) { return isa<mt::CategoricalCrossentropyOp, mt::TopKCategoricalAccuracyOp>(op); });
    if (criteria.empty() || !ofLabels || classes == all || classes < fewestClasses)
      return;
    Value wide = withMoreClasses(product, logits, all - classes);
    for (Operation *op : criteria)
      op->replaceUsesOfWith(logits, wide);
  }
};

} // namespace
} // namespace mtc
