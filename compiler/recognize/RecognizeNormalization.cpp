// SPDX-License-Identifier: Apache-2.0
//
// mt-recognize-normalization: mt.normalize in place of (x - mean) / sqrt(variance + epsilon).
#include "compiler/Passes.h"
#include "compiler/recognize/Match.h"
#include "dialects/mt/Types.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_RECOGNIZENORMALIZATION
#include "compiler/Passes.h.inc"

namespace {

using mt::tensorOf;

struct Centred {
  Value x;
  SmallVector<int64_t> dims;

  // Whether a value has the shape of x with the size 1 along the axes of the mean.
  bool isKept(Value value) const {
    SmallVector<int64_t> kept(tensorOf(x).getShape());
    for (int64_t axis : dims)
      kept[axis] = 1;
    return tensorOf(value).getShape() == ArrayRef<int64_t>(kept);
  }
};

// x and the axes of its mean, of x - mean.
std::optional<Centred> centredBy(Value value) {
  auto subtract = value.getDefiningOp<mt::SubOp>();
  std::optional<Reduced> mean = subtract ? meanOf(subtract.getRhs()) : std::nullopt;
  if (!mean || mean->operand != subtract.getLhs() || subtract.getType() != subtract.getLhs().getType())
    return std::nullopt;
  return Centred{subtract.getLhs(), mean->dims};
}

// x - mean, of its square; the formula may write it a second time.
std::optional<Centred> squareOf(Value value) {
  if (auto square = value.getDefiningOp<mt::SquareOp>())
    return centredBy(square.getOperand());
  auto multiply = value.getDefiningOp<mt::MulOp>();
  return multiply && multiply.getLhs() == multiply.getRhs() ? centredBy(multiply.getLhs()) : std::nullopt;
}

// The epsilon, where a value is the variance of what is centred plus a number.
std::optional<double> epsilonOf(Value value, const Centred &centred) {
  auto add = withoutReshapes(value).getDefiningOp<mt::AddOp>();
  if (!add)
    return std::nullopt;
  std::optional<double> left = numberOf(add.getLhs()), right = numberOf(add.getRhs());
  if (left.has_value() == right.has_value())
    return std::nullopt;
  Value variance = left ? add.getRhs() : add.getLhs();
  // Epsilon is added to the mean of the squares in any shape of it.
  std::optional<Reduced> mean = meanOf(variance, /*anyShape=*/true);
  std::optional<Centred> squared = mean ? squareOf(mean->operand) : std::nullopt;
  if (!squared || squared->x != centred.x || squared->dims != centred.dims || mean->dims != centred.dims)
    return std::nullopt;
  return left ? *left : *right;
}

// The epsilon of sqrt(variance + epsilon).
std::optional<double> deviation(Value value, const Centred &centred) {
  auto root = withoutReshapes(value).getDefiningOp<mt::SqrtOp>();
  return root && centred.isKept(value) ? epsilonOf(root.getOperand(), centred) : std::nullopt;
}

// The epsilon of 1 / sqrt(variance + epsilon).
std::optional<double> inverseDeviation(Value value, const Centred &centred) {
  if (!centred.isKept(value))
    return std::nullopt;
  Value inner = withoutReshapes(value);
  if (auto root = inner.getDefiningOp<mt::RsqrtOp>())
    return epsilonOf(root.getOperand(), centred);
  auto divide = inner.getDefiningOp<mt::DivOp>();
  auto root = divide ? withoutReshapes(divide.getRhs()).getDefiningOp<mt::SqrtOp>() : mt::SqrtOp();
  return root && numberOf(divide.getLhs()) == 1.0 ? epsilonOf(root.getOperand(), centred) : std::nullopt;
}

Value normalized(Operation *op, const Centred &centred, double epsilon) {
  OpBuilder builder(op);
  return mt::NormalizeOp::create(builder, op->getLoc(), centred.x.getType(), centred.x, centred.dims,
                                 llvm::APFloat(static_cast<float>(epsilon)));
}

// (x - mean) / sqrt(variance + epsilon).
void matchQuotient(mt::DivOp divide) {
  std::optional<Centred> centred = centredBy(divide.getLhs());
  std::optional<double> epsilon = centred ? deviation(divide.getRhs(), *centred) : std::nullopt;
  if (epsilon)
    replaceMatched(divide, normalized(divide, *centred, *epsilon));
}

// (x - mean) * (1 / sqrt(variance + epsilon)), or times the product of that and a scale.
void matchProduct(mt::MulOp multiply) {
  for (unsigned side : {0, 1}) {
    std::optional<Centred> centred = centredBy(multiply->getOperand(side));
    if (!centred)
      continue;
    Value other = multiply->getOperand(1 - side);
    if (std::optional<double> epsilon = inverseDeviation(other, *centred))
      return replaceMatched(multiply, normalized(multiply, *centred, *epsilon));
    auto scaled = other.getDefiningOp<mt::MulOp>();
    for (unsigned inner : {0, 1}) {
      std::optional<double> epsilon = scaled ? inverseDeviation(scaled->getOperand(inner), *centred) : std::nullopt;
      if (!epsilon)
        continue;
      OpBuilder builder(multiply);
      Value whole = normalized(multiply, *centred, *epsilon);
      return replaceMatched(multiply, mt::MulOp::create(builder, multiply.getLoc(), multiply.getType(), whole,
                                                        scaled->getOperand(1 - inner)));
    }
  }
}

struct RecognizeNormalization : impl::RecognizeNormalizationBase<RecognizeNormalization> {
  void runOnOperation() override {
    forEach<mt::DivOp>(getOperation(), matchQuotient);
    forEach<mt::MulOp>(getOperation(), matchProduct);
  }
};

} // namespace
} // namespace mtc
