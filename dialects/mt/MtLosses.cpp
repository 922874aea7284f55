// SPDX-License-Identifier: Apache-2.0
//
// Decompositions of regression losses; their gradients are derived from these. MtCriteria.cpp has cross-entropies and
// accuracies, MtCriteriaEvaluate.cpp the reference evaluation of all.
#include "dialects/mt/Expr.h"
#include "dialects/mt/MtDialect.h"

using namespace mlir;
using namespace mlir::mt;

// Keras' epsilon.
static constexpr double epsilon = 1e-7;

static Expr meanLast(const Expr &each) {
  return squeezeLast(sumLast(each)) / static_cast<double>(each.type().getShape().back());
}

#define MT_LOSS(OP)                                                                                                    \
  static Expr lossOf(OP op, const Expr &p, const Expr &t);                                                             \
  Value OP::decompose(OpBuilder &builder) {                                                                            \
    return lossOf(*this, Expr(builder, getLoc(), getPredictions()), Expr(builder, getLoc(), getTargets())).value();    \
  }                                                                                                                    \
  Expr lossOf([[maybe_unused]] OP op, const Expr &p, const Expr &t)

MT_LOSS(HuberOp) {
  double delta = op.getDelta().convertToDouble();
  Expr error = p - t, size = abs(error);
  return meanLast(select(size <= delta, square(error) * 0.5, size * delta - 0.5 * delta * delta));
}

static Expr margin(const Expr &p, const Expr &t) { return maximum(1.0 - select(t == 0.0, -1.0, t) * p, 0.0); }
MT_LOSS(HingeOp) { return meanLast(margin(p, t)); }
MT_LOSS(SquaredHingeOp) { return meanLast(square(margin(p, t))); }
MT_LOSS(CategoricalHingeOp) { return squeezeLast(maximum(maxLast((1.0 - t) * p) - sumLast(t * p) + 1.0, 0.0)); }

MT_LOSS(KlDivergenceOp) {
  Expr q = minimum(maximum(p, epsilon), 1.0), s = minimum(maximum(t, epsilon), 1.0);
  return squeezeLast(sumLast(s * log(s / q)));
}
MT_LOSS(PoissonOp) { return meanLast(p - t * log(p + epsilon)); }
MT_LOSS(LogCoshOp) {
  Expr error = p - t;
  return meanLast(error + softplus(error * -2.0) - 0.69314718055994531);
}

// The bound is squared because it is applied before the root, which gives a zero vector a finite gradient.
static Expr unit(const Expr &a) { return a * rsqrt(maximum(sumLast(square(a)), epsilon * epsilon)); }
MT_LOSS(CosineSimilarityOp) { return -squeezeLast(sumLast(unit(p) * unit(t))); }

MT_LOSS(MeanAbsolutePercentageErrorOp) { return meanLast(abs((t - p) / maximum(abs(t), epsilon))) * 100.0; }
MT_LOSS(MeanSquaredLogarithmicErrorOp) {
  return meanLast(square(log(maximum(p, epsilon) + 1.0) - log(maximum(t, epsilon) + 1.0)));
}
#undef MT_LOSS
