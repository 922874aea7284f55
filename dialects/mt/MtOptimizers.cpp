// SPDX-License-Identifier: Apache-2.0
//
// Optimizers: the formulas and names of Keras 3 in the same order of operations, with f32 scalars as in Keras.
// Attributes select the formulas of PyTorch.
#include "dialects/mt/Expr.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Numbers.h"

using namespace mlir;
using namespace mlir::mt;

static LogicalResult verifyFraction(Operation *op, StringRef name, const APFloat &value) {
  if (!(number(value) >= 0 && number(value) < 1))
    return op->emitOpError() << "expected " << name << " from 0 to less than 1, found " << number(value);
  return success();
}
static LogicalResult verifyNotNegative(Operation *op, StringRef name, const APFloat &value) {
  if (!(number(value) >= 0 && value.isFinite()))
    return op->emitOpError() << "expected a finite " << name << " of 0 or more, found " << number(value);
  return success();
}

// Checks the attributes of all optimizers.
template <typename Op> static LogicalResult verifyOptions(Op op) {
  if (failed(verifyNotNegative(op, "learning_rate", op.getLearningRate())) ||
      failed(verifyNotNegative(op, "weight_decay", op.getWeightDecay())))
    return failure();
  int clips = 0;
  for (auto [name, value] : {std::pair("clipnorm", op.getClipnorm()), std::pair("clipvalue", op.getClipvalue()),
                             std::pair("global_clipnorm", op.getGlobalClipnorm())}) {
    if (!value)
      continue;
    ++clips;
    if (!(number(*value) > 0 && value->isFinite()))
      return op.emitOpError("expected a finite ") << name << " above 0, found " << number(*value);
  }
  if (clips > 1)
    return op.emitOpError("expected one of clipnorm, clipvalue and global_clipnorm at most, found ") << clips;
  if (op.getEmaMomentum() && failed(verifyFraction(op, "ema_momentum", *op.getEmaMomentum())))
    return failure();
  if (auto frequency = op.getEmaOverwriteFrequency()) {
    if (!op.getEmaMomentum())
      return op.emitOpError("expected an ema_momentum with ema_overwrite_frequency, found none");
    if (*frequency < 1 || *frequency > (1 << 24))
      return op.emitOpError("expected an ema_overwrite_frequency from 1 to 2^24, found ") << *frequency;
  }
  return success();
}

LogicalResult SgdOp::verify() {
  if (failed(verifyOptions(*this)) || failed(verifyFraction(*this, "momentum", getMomentum())))
    return failure();
  for (auto [name, given] :
       {std::pair("nesterov", getNesterov()), std::pair("rate_after_momentum", getRateAfterMomentum())})
    if (given && getMomentum().isZero())
      return emitOpError("expected a momentum above 0 with ") << name << ", found 0";
  return success();
}
StringRef SgdOp::getOptimizerName() { return "sgd"; }
SmallVector<StringRef> SgdOp::getSlotNames() {
  return getMomentum().isZero() ? SmallVector<StringRef>() : SmallVector<StringRef>{"momentum"};
}
SmallVector<Value> SgdOp::buildScalars(OpBuilder &, Value learningRate, Value, ValueRange) { return {learningRate}; }
SmallVector<Value> SgdOp::buildUpdate(OpBuilder &builder, ValueRange scalars, Value variable, Value gradient,
                                      ValueRange slots) {
  Expr w(builder, getLoc(), variable), g(builder, getLoc(), gradient), rate(builder, getLoc(), scalars[0]);
  if (slots.empty())
    return {(w - g * rate).value()};
  Expr old(builder, getLoc(), slots[0]);
  double momentum = number(getMomentum());
  if (getRateAfterMomentum()) {
    Expr m = old * momentum + g;
    return {(w - (getNesterov() ? g + m * momentum : m) * rate).value(), m.value()};
  }
  Expr m = old * momentum - g * rate;
  Expr step = getNesterov() ? m * momentum - g * rate : m;
  return {(w + step).value(), m.value()};
}

// alpha = lr sqrt(1 - beta_2^t) / (1 - beta_1^t), with t = iteration + 1.
static Value adamAlpha(OpBuilder &builder, Location location, Value learningRate, Value iteration, const APFloat &beta1,
                       const APFloat &beta2) {
  Expr rate(builder, location, learningRate), t = toFloat(Expr(builder, location, iteration) + 1);
  return (rate * sqrt(1.0 - pow(number(beta2), t)) / (1.0 - pow(number(beta1), t))).value();
}
// m and v move towards g and g^2. With epsilon = e sqrt(1 - beta_2^t), the step m alpha / (sqrt(v) + epsilon) equals m'
// rate / (sqrt(v') + e) of the bias-corrected m' and v'.
static SmallVector<Value> adamUpdate(Expr w, Expr g, Expr m, Expr v, std::optional<Expr> largest, Expr alpha,
                                     const APFloat &beta1, const APFloat &beta2, Expr epsilon) {
  m = m + (g - m) * oneMinus(beta1);
  v = v + (square(g) - v) * oneMinus(beta2);
  Expr under = largest ? maximum(*largest, v) : v;
  SmallVector<Value> values = {(w - m * alpha / (sqrt(under) + epsilon)).value(), m.value(), v.value()};
  if (largest)
    values.push_back(under.value());
  return values;
}
template <typename Op> static LogicalResult verifyAdam(Op op) {
  return success(succeeded(verifyOptions(op)) && succeeded(verifyFraction(op, "beta_1", op.getBeta_1())) &&
                 succeeded(verifyFraction(op, "beta_2", op.getBeta_2())) &&
                 succeeded(verifyNotNegative(op, "epsilon", op.getEpsilon())));
}

#define MT_ADAM(OP, NAME)                                                                                              \
  LogicalResult OP::verify() { return verifyAdam(*this); }                                                             \
  StringRef OP::getOptimizerName() { return NAME; }                                                                    \
  SmallVector<StringRef> OP::getSlotNames() {                                                                          \
    return getAmsgrad() ? SmallVector<StringRef>{"momentum", "velocity", "velocity_hat"}                               \
                        : SmallVector<StringRef>{"momentum", "velocity"};                                              \
  }                                                                                                                    \
  SmallVector<Value> OP::buildScalars(OpBuilder &builder, Value learningRate, Value iteration, ValueRange) {           \
    Value alpha = adamAlpha(builder, getLoc(), learningRate, iteration, getBeta_1(), getBeta_2());                     \
    if (!getEpsilonAfterCorrection())                                                                                  \
      return {alpha};                                                                                                  \
    Expr t = toFloat(Expr(builder, getLoc(), iteration) + 1);                                                          \
    return {alpha, (sqrt(1.0 - pow(number(getBeta_2()), t)) * number(getEpsilon())).value()};                          \
  }                                                                                                                    \
  SmallVector<Value> OP::buildUpdate(OpBuilder &builder, ValueRange scalars, Value variable, Value gradient,           \
                                     ValueRange slots) {                                                               \
    auto e = [&](Value value) { return Expr(builder, getLoc(), value); };                                              \
    auto largest = getAmsgrad() ? std::optional<Expr>(e(slots[2])) : std::nullopt;                                     \
    Expr epsilon = getEpsilonAfterCorrection() ? e(scalars[1]) : Expr(number(getEpsilon()));                           \
    return adamUpdate(e(variable), e(gradient), e(slots[0]), e(slots[1]), largest, e(scalars[0]), getBeta_1(),         \
                      getBeta_2(), epsilon);                                                                           \
  }
MT_ADAM(AdamOp, "adam")
MT_ADAM(AdamWOp, "adam_w")
#undef MT_ADAM

static Expr rootWith(const Expr &x, double epsilon, bool afterRoot) {
  return afterRoot ? sqrt(x) + epsilon : sqrt(x + epsilon);
}

LogicalResult RmspropOp::verify() {
  if (getRateAfterMomentum() && getMomentum().isZero())
    return emitOpError("expected a momentum above 0 with rate_after_momentum, found 0");
  return success(succeeded(verifyOptions(*this)) && succeeded(verifyFraction(*this, "rho", getRho())) &&
                 succeeded(verifyFraction(*this, "momentum", getMomentum())) &&
                 succeeded(verifyNotNegative(*this, "epsilon", getEpsilon())));
}
StringRef RmspropOp::getOptimizerName() { return "rm_sprop"; }
SmallVector<StringRef> RmspropOp::getSlotNames() {
  SmallVector<StringRef> names = {"velocity"};
  if (!getMomentum().isZero())
    names.push_back("momentum");
  if (getCentered())
    names.push_back("average_gradient");
  return names;
}
SmallVector<Value> RmspropOp::buildScalars(OpBuilder &, Value learningRate, Value, ValueRange) {
  return {learningRate};
}
SmallVector<Value> RmspropOp::buildUpdate(OpBuilder &builder, ValueRange scalars, Value variable, Value gradient,
                                          ValueRange slots) {
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  Expr w = e(variable), g = e(gradient), rate = e(scalars[0]);
  double rho = number(getRho()), rest = oneMinus(getRho());
  Expr v = e(slots[0]) * rho + square(g) * rest, variance = v;
  SmallVector<Value> values = {Value(), v.value()};
  Value average;
  if (getCentered()) {
    Expr a = e(slots.back()) * rho + g * rest;
    variance = v - square(a);
    average = a.value();
  }
  Expr root = rootWith(variance, number(getEpsilon()), getEpsilonAfterRoot());
  bool after = getRateAfterMomentum();
  Expr step = after ? g / root : g * rate / root;
  if (!getMomentum().isZero()) {
    step = e(slots[1]) * number(getMomentum()) + step;
    values.push_back(step.value());
  }
  if (average)
    values.push_back(average);
  values[0] = (w - (after ? step * rate : step)).value();
  return values;
}

LogicalResult LionOp::verify() {
  return success(succeeded(verifyOptions(*this)) && succeeded(verifyFraction(*this, "beta_1", getBeta_1())) &&
                 succeeded(verifyFraction(*this, "beta_2", getBeta_2())));
}
StringRef LionOp::getOptimizerName() { return "lion"; }
SmallVector<StringRef> LionOp::getSlotNames() { return {"momentum"}; }
SmallVector<Value> LionOp::buildScalars(OpBuilder &, Value learningRate, Value, ValueRange) { return {learningRate}; }
// For Lion, Keras subtracts in float32: 1 - 0.9f.
SmallVector<Value> LionOp::buildUpdate(OpBuilder &builder, ValueRange scalars, Value variable, Value gradient,
                                       ValueRange slots) {
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  Expr w = e(variable), g = e(gradient), m = e(slots[0]);
  double beta1 = number(getBeta_1()), beta2 = number(getBeta_2());
  Expr step = e(scalars[0]) * sign(m * beta1 + g * (1 - beta1));
  return {(w - step).value(), (m * beta2 + g * (1 - beta2)).value()};
}

// ---- other variants of Adam

LogicalResult AdamaxOp::verify() { return verifyAdam(*this); }
StringRef AdamaxOp::getOptimizerName() { return "adamax"; }
SmallVector<StringRef> AdamaxOp::getSlotNames() { return {"momentum", "norm"}; }
// Scalars: the rate, 1 - beta_1^t.
SmallVector<Value> AdamaxOp::buildScalars(OpBuilder &builder, Value learningRate, Value iteration, ValueRange) {
  Expr t = toFloat(Expr(builder, getLoc(), iteration) + 1);
  return {learningRate, (1.0 - pow(number(getBeta_1()), t)).value()};
}
SmallVector<Value> AdamaxOp::buildUpdate(OpBuilder &builder, ValueRange scalars, Value variable, Value gradient,
                                         ValueRange slots) {
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  Expr w = e(variable), g = e(gradient), m = e(slots[0]), u = e(slots[1]);
  m = m + (g - m) * oneMinus(getBeta_1());
  u = maximum(u * number(getBeta_2()), abs(g));
  return {(w - m * e(scalars[0]) / ((u + number(getEpsilon())) * e(scalars[1]))).value(), m.value(), u.value()};
}

LogicalResult NadamOp::verify() { return verifyAdam(*this); }
StringRef NadamOp::getOptimizerName() { return "nadam"; }
SmallVector<StringRef> NadamOp::getSlotNames() { return {"momentum", "velocity"}; }
SmallVector<std::pair<StringRef, double>> NadamOp::getState() { return {{"u_product", 1.0}}; }
// Scalars: the product of all u so far, the rate, u of this step, u of the next step, 1 - the product up to this step,
// 1 - the product up to the next step, 1 - beta_2^t.
SmallVector<Value> NadamOp::buildScalars(OpBuilder &builder, Value learningRate, Value iteration, ValueRange state) {
  Expr i(builder, getLoc(), iteration), t = toFloat(i + 1), beta1(number(getBeta_1()));
  auto u = [&](const Expr &at) { return (1.0 - pow(0.96, at) * 0.5) * beta1; };
  Expr now = u(t), next = u(toFloat(i + 2));
  Expr product = Expr(builder, getLoc(), state[0]) * beta1 * (1.0 - pow(0.96, t) * 0.5);
  return {product.value(),
          learningRate,
          now.value(),
          next.value(),
          (1.0 - product).value(),
          (1.0 - product * next).value(),
          (1.0 - pow(number(getBeta_2()), t)).value()};
}
// For Nadam, Keras subtracts in float32: 1 - 0.9f.
SmallVector<Value> NadamOp::buildUpdate(OpBuilder &builder, ValueRange scalars, Value variable, Value gradient,
                                        ValueRange slots) {
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  Expr w = e(variable), g = e(gradient), m = e(slots[0]), v = e(slots[1]);
  m = m + (g - m) * (1 - number(getBeta_1()));
  v = v + (square(g) - v) * (1 - number(getBeta_2()));
  Expr mHat = m * e(scalars[3]) / e(scalars[5]) + g * (1.0 - e(scalars[2])) / e(scalars[4]);
  Expr vHat = v / e(scalars[6]);
  return {(w - mHat * e(scalars[1]) / (sqrt(vHat) + number(getEpsilon()))).value(), m.value(), v.value()};
}

LogicalResult LambOp::verify() { return verifyAdam(*this); }
StringRef LambOp::getOptimizerName() { return "lamb"; }
SmallVector<StringRef> LambOp::getSlotNames() { return {"momentum", "velocity"}; }
// Scalars: the rate, 1 - beta_1^t, 1 - beta_2^t.
SmallVector<Value> LambOp::buildScalars(OpBuilder &builder, Value learningRate, Value iteration, ValueRange) {
  Expr t = toFloat(Expr(builder, getLoc(), iteration) + 1);
  return {learningRate, (1.0 - pow(number(getBeta_1()), t)).value(), (1.0 - pow(number(getBeta_2()), t)).value()};
}
SmallVector<Value> LambOp::buildUpdate(OpBuilder &builder, ValueRange scalars, Value variable, Value gradient,
                                       ValueRange slots) {
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  Expr w = e(variable), g = e(gradient), m = e(slots[0]), v = e(slots[1]);
  m = m + (g - m) * oneMinus(getBeta_1());
  v = v + (square(g) - v) * oneMinus(getBeta_2());
  Expr step = m / e(scalars[1]) / (sqrt(v / e(scalars[2])) + number(getEpsilon()));
  Expr length = sqrt(sumAll(square(w))), stepLength = sqrt(sumAll(square(step)));
  Expr ratio = select(length > 0.0, select(stepLength > 0.0, length / stepLength, 1.0), 1.0);
  return {(w - step * (ratio * e(scalars[0]))).value(), m.value(), v.value()};
}

// ---- Adagrad and Adadelta

LogicalResult AdagradOp::verify() {
  return success(succeeded(verifyOptions(*this)) &&
                 succeeded(verifyNotNegative(*this, "initial_accumulator_value", getInitialAccumulatorValue())) &&
                 succeeded(verifyNotNegative(*this, "epsilon", getEpsilon())));
}
StringRef AdagradOp::getOptimizerName() { return "adagrad"; }
SmallVector<StringRef> AdagradOp::getSlotNames() { return {"accumulator"}; }
double AdagradOp::getSlotStart() { return number(getInitialAccumulatorValue()); }
SmallVector<Value> AdagradOp::buildScalars(OpBuilder &, Value learningRate, Value, ValueRange) {
  return {learningRate};
}
SmallVector<Value> AdagradOp::buildUpdate(OpBuilder &builder, ValueRange scalars, Value variable, Value gradient,
                                          ValueRange slots) {
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  Expr g = e(gradient), sum = e(slots[0]) + square(g);
  return {(e(variable) - g * e(scalars[0]) / rootWith(sum, number(getEpsilon()), getEpsilonAfterRoot())).value(),
          sum.value()};
}

LogicalResult AdadeltaOp::verify() {
  return success(succeeded(verifyOptions(*this)) && succeeded(verifyFraction(*this, "rho", getRho())) &&
                 succeeded(verifyNotNegative(*this, "epsilon", getEpsilon())));
}
StringRef AdadeltaOp::getOptimizerName() { return "adadelta"; }
SmallVector<StringRef> AdadeltaOp::getSlotNames() { return {"accumulated_grad", "accumulated_delta_var"}; }
SmallVector<Value> AdadeltaOp::buildScalars(OpBuilder &, Value learningRate, Value, ValueRange) {
  return {learningRate};
}
SmallVector<Value> AdadeltaOp::buildUpdate(OpBuilder &builder, ValueRange scalars, Value variable, Value gradient,
                                           ValueRange slots) {
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  double rho = number(getRho()), rest = oneMinus(getRho());
  auto rms = [&](const Expr &x) { return sqrt(x + number(getEpsilon())); };
  Expr g = e(gradient), squares = e(slots[0]) * rho + square(g) * rest;
  Expr step = -(rms(e(slots[1])) * g / rms(squares));
  return {(e(variable) + step * e(scalars[0])).value(), squares.value(),
          (e(slots[1]) * rho + square(step) * rest).value()};
}
