// SPDX-License-Identifier: Apache-2.0
//
// Losses that are formulas of other ops, as Keras computes them.
#include "frontend/training/Criteria.h"

using namespace mlir;
using mt::Expr;

namespace mtc::training {
namespace {

Expr clipped(const Expr &p) { return minimum(maximum(p, kerasEpsilon), 1 - kerasEpsilon); }
Expr lineMean(const Expr &a) { return squeezeLast(sumLast(a)) / static_cast<double>(a.type().getShape().back()); }

// A power of a number of 0 or more.
Expr power(const Expr &a, double exponent) {
  if (exponent == 1)
    return a;
  return exponent == 2 ? square(a) : exponent == 3 ? a * square(a) : pow(a, exponent);
}

// The axes of a sample over which a loss is a sum, which are all but the first; none if it is also one over the
// samples. False after an error.
bool isWithinSamples(Criterion &c, bool &within) {
  const Json *axis = c.config.find("axis");
  within = axis != nullptr;
  if (!axis)
    return true;
  int64_t rank = cast<RankedTensorType>(c.predictions.getType()).getRank();
  SmallVector<int64_t> axes = c.config.integers("axis", axis->is_array() ? -1 : 1);
  for (int64_t &each : axes)
    each += each < 0 ? rank : 0;
  llvm::sort(axes);
  if (axes == llvm::to_vector(llvm::seq<int64_t>(1, rank)))
    return true;
  c.config.error("expected axis to be null, for all, or all axes but the first, found " + describe(*axis));
  return false;
}

// The sum over all elements of each sample, or over all samples too: a number for each sample.
Expr total(Criterion &c, const Expr &a, bool within) {
  c.isOne = !within;
  RankedTensorType type = a.type();
  auto rows = RankedTensorType::get({type.getShape().front()}, type.getElementType());
  if (!within)
    return broadcastTo(sumAll(a), rows);
  auto dims = llvm::to_vector(llvm::seq<int64_t>(1, type.getRank()));
  return reshape(sumOver(a, dims), rows.getShape());
}

} // namespace

Value buildBinaryFocal(Criterion &c) {
  double gamma = c.config.real("gamma", 2), alpha = c.config.real("alpha", 0.25);
  bool balanced = c.config.boolean("apply_class_balancing", false);
  Expr t = c.truth(), given = c.prediction(), p = c.fromLogits ? sigmoid(given) : given, inside = clipped(p);
  Expr entropy = -(t * log(inside) + (1.0 - t) * log(1.0 - inside));
  Expr chance = t * p + (1.0 - t) * (1.0 - p), loss = power(1.0 - chance, gamma) * entropy;
  return lineMean(balanced ? (t * alpha + (1.0 - t) * (1 - alpha)) * loss : loss).value();
}

Value buildCategoricalFocal(Criterion &c) {
  double gamma = c.config.real("gamma", 2), alpha = c.config.real("alpha", 0.25);
  Expr t = c.truth(), p = c.prediction();
  if (c.fromLogits)
    p = p.make(mt::SoftmaxOp::create(c.builder, c.location, p.type(), p.value()));
  Expr inside = clipped(p / sumLast(p));
  return squeezeLast(sumLast(power(1.0 - inside, gamma) * alpha * (-t * log(inside)))).value();
}

Value buildGeneralized(Criterion &c) {
  double q = c.config.real("q", 0.5);
  Expr p = c.prediction();
  Value hot = mt::OneHotOp::create(c.builder, c.location, p.type(), c.targets);
  // A product with `hot` would make the gradients of the other classes NaN where that of a power of 0 is infinite.
  Expr chance = squeezeLast(sumLast(select(p.make(hot) > 0.0, p, 0.0)));
  return ((1.0 - pow(chance, q)) / q).value();
}

Value buildDice(Criterion &c) {
  bool within;
  if (!isWithinSamples(c, within))
    return {};
  Expr t = c.truth(), p = c.prediction();
  return (1.0 - total(c, t * p, within) * 2.0 / (total(c, t, within) + total(c, p, within) + kerasEpsilon)).value();
}

Value buildTversky(Criterion &c) {
  double alpha = c.config.real("alpha", 0.5), beta = c.config.real("beta", 0.5);
  bool within;
  if (!isWithinSamples(c, within))
    return {};
  Expr t = c.truth(), p = c.prediction(), both = total(c, t * p, within);
  Expr missed = total(c, (1.0 - p) * t, within), added = total(c, p * (1.0 - t), within);
  return (1.0 - both / (both + missed * alpha + added * beta + kerasEpsilon)).value();
}

} // namespace mtc::training
