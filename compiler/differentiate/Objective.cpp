// SPDX-License-Identifier: Apache-2.0
#include "compiler/differentiate/Objective.h"
#include "dialects/mt/Expr.h"

using namespace mlir;
using mt::Expr;

namespace mtc {

// Multiplies values by weights, which may lack the last axes of the values.
static Expr weigh(Expr values, std::optional<Expr> weights) {
  if (!weights)
    return values;
  while (weights->type().getRank() < values.type().getRank())
    weights = unsqueezeLast(*weights);
  return values * *weights;
}

static Expr batchSize(OpBuilder &builder, Location location, Type element) {
  return Expr(builder, location, mt::BatchSizeOp::create(builder, location, RankedTensorType::get({}, element)));
}
// If the weights of a batch are all 0, the divisor is 1, so the loss is 0 as in Keras.
static Expr orOne(const Expr &weights) { return select(weights == 0.0, 1.0, weights); }
static Expr times(const Expr &a, double factor) { return factor == 1 ? a : a * factor; }

static std::optional<Expr> optional(OpBuilder &builder, Location location, Value value) {
  return value ? std::optional<Expr>(Expr(builder, location, value)) : std::nullopt;
}

Mean buildLoss(OpBuilder &builder, mt::LossOp loss, Value values, Value weights) {
  Location location = loss.getLoc();
  Expr v(builder, location, values), n = batchSize(builder, location, v.type().getElementType());
  std::optional<Expr> w = optional(builder, location, weights);
  Expr total = sumAll(weigh(v, w)), divisor = n;
  if (loss.getDivisor() == mt::Divisor::elements)
    divisor = times(n, mt::elementsPerRow(values.getType()));
  if (loss.getDivisor() == mt::Divisor::weights)
    divisor = orOne(sumAll(*w));
  return {(total / divisor).value(), n.value()};
}

Value scaleLoss(OpBuilder &builder, mt::LossOp loss, Value value) {
  return times(Expr(builder, loss.getLoc(), value), loss.getScale().convertToDouble()).value();
}

Value buildRegularizer(OpBuilder &builder, mt::RegularizerOp regularizer, Value value) {
  Expr v(builder, regularizer.getLoc(), value);
  double l1 = regularizer.getL1().convertToDouble(), l2 = regularizer.getL2().convertToDouble();
  std::optional<Expr> total;
  if (l1 != 0)
    total = sumAll(abs(v)) * l1;
  if (l2 != 0) {
    Expr squares = sumAll(square(v)) * l2;
    total = total ? *total + squares : squares;
  }
  if (!total)
    return {};
  return (mt::isSplit(value.getType()) ? *total / batchSize(builder, regularizer.getLoc(), v.type().getElementType())
                                       : *total)
      .value();
}

Mean buildMetric(OpBuilder &builder, mt::MetricOp metric, Value values, Value weights) {
  Location location = metric.getLoc();
  Expr v(builder, location, values);
  if (mt::isOfSums(metric.getFinalizer())) {
    auto type = RankedTensorType::get(v.type().getShape().drop_front(), v.type().getElementType());
    auto sums = mt::ReduceOp::create(builder, location, type, mt::Reduction::sum, values, ArrayRef<int64_t>{0});
    return {sums, batchSize(builder, location, v.type().getElementType()).value()};
  }
  std::optional<Expr> w = optional(builder, location, weights);
  // Number of elements of the values per weight, or per sample if there are no weights.
  double each = mt::elementsPerRow(values.getType()) / (weights ? mt::elementsPerRow(weights.getType()) : 1);
  Expr total = sumAll(weigh(v, w)), weight = w ? sumAll(*w) : batchSize(builder, location, v.type().getElementType());
  Expr mean = total / times(weight, each);
  return {(w ? select(weight > 0.0, mean, 0.0) : mean).value(), weight.value()};
}

} // namespace mtc
