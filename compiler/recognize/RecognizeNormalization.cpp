// SPDX-License-Identifier: Apache-2.0
//
// mt-recognize-normalization: mt.normalize in place of (x - mean) / sqrt(variance + epsilon).
#include "compiler/Passes.h"
#include "compiler/recognize/Match.h"
#include "dialects/mt/Compilation.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_RECOGNIZENORMALIZATION
#include "compiler/Passes.h.inc"

namespace {

// Matches x - mean: returns x and the axes of the mean.
std::optional<Reduced> centredBy(Value value) {
  auto subtract = value.getDefiningOp<mt::SubOp>();
  std::optional<Reduced> mean = subtract ? meanOf(subtract.getRhs()) : std::nullopt;
  bool centres = mean && mean->operand == subtract.getLhs() && mean->broadcasts(subtract.getRhs()) &&
                 subtract.getType() == subtract.getLhs().getType();
  return centres ? mean : std::nullopt;
}

// x - mean, of its square; the formula may write it a second time.
std::optional<Reduced> squareOf(Value value) {
  if (auto square = value.getDefiningOp<mt::SquareOp>())
    return centredBy(square.getOperand());
  auto multiply = value.getDefiningOp<mt::MulOp>();
  return multiply && multiply.getLhs() == multiply.getRhs() ? centredBy(multiply.getLhs()) : std::nullopt;
}

// The epsilon, where a value is the variance of what is centred plus a number.
std::optional<double> epsilonOf(Value value, const Reduced &centred) {
  auto add = withoutReshapes(value).getDefiningOp<mt::AddOp>();
  if (!add)
    return std::nullopt;
  std::optional<double> left = numberOf(add.getLhs()), right = numberOf(add.getRhs());
  if (left.has_value() == right.has_value())
    return std::nullopt;
  Value variance = left ? add.getRhs() : add.getLhs();
  // Epsilon is added to the mean of the squares in any shape of it.
  std::optional<Reduced> mean = meanOf(variance);
  std::optional<Reduced> squared = mean ? squareOf(mean->operand) : std::nullopt;
  if (!squared || squared->operand != centred.operand || squared->dims != centred.dims || mean->dims != centred.dims)
    return std::nullopt;
  return left ? *left : *right;
}

// The epsilon of sqrt(variance + epsilon).
std::optional<double> deviation(Value value, const Reduced &centred) {
  auto root = withoutReshapes(value).getDefiningOp<mt::SqrtOp>();
  return root && centred.broadcasts(value) ? epsilonOf(root.getOperand(), centred) : std::nullopt;
}

// The epsilon of 1 / sqrt(variance + epsilon).
std::optional<double> inverseDeviation(Value value, const Reduced &centred) {
  if (!centred.broadcasts(value))
    return std::nullopt;
  Value inner = withoutReshapes(value);
  if (auto root = inner.getDefiningOp<mt::RsqrtOp>())
    return epsilonOf(root.getOperand(), centred);
  auto divide = inner.getDefiningOp<mt::DivOp>();
  auto root = divide ? withoutReshapes(divide.getRhs()).getDefiningOp<mt::SqrtOp>() : mt::SqrtOp();
  return root && numberOf(divide.getLhs()) == 1.0 ? epsilonOf(root.getOperand(), centred) : std::nullopt;
}

Value normalized(Operation *op, const Reduced &centred, double epsilon) {
  OpBuilder builder(op);
  return mt::NormalizeOp::create(builder, op->getLoc(), centred.operand.getType(), centred.operand, centred.dims,
                                 llvm::APFloat(static_cast<float>(epsilon)));
}

// (x - mean) / sqrt(variance + epsilon).
void matchQuotient(mt::DivOp divide) {
  std::optional<Reduced> centred = centredBy(divide.getLhs());
  std::optional<double> epsilon = centred ? deviation(divide.getRhs(), *centred) : std::nullopt;
  if (epsilon)
    replaceMatched(divide, normalized(divide, *centred, *epsilon));
}

// (x - mean) * (1 / sqrt(variance + epsilon)), or times the product of that and a scale.
void matchProduct(mt::MulOp multiply) {
  for (unsigned side : {0, 1}) {
    std::optional<Reduced> centred = centredBy(multiply->getOperand(side));
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
    if (mt::Compilation(getOperation()).isDouble()) // constants are matched with the accuracy of f32
      return;
    forEach<mt::DivOp>(getOperation(), matchQuotient);
    forEach<mt::MulOp>(getOperation(), matchProduct);
  }
};

} // namespace
} // namespace mtc
