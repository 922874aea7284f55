// SPDX-License-Identifier: Apache-2.0
//
// Optimizers: Keras 3's formulas, in its order of operations (scalars are float32 there too) and with its names.
#include "dialects/mt/Expr.h"
#include "dialects/mt/MtDialect.h"
#include <charconv>

using namespace mlir;
using namespace mlir::mt;

// 1 - x as Python computes it from the shortest decimal of x: Keras subtracts in double before it rounds to float32. (1
// - 0.9f is not 0.1f.)
static double oneMinus(const APFloat &x) {
  char text[64];
  char *end = std::to_chars(text, text + sizeof(text), x.convertToFloat()).ptr;
  double decimal = 0;
  std::from_chars(text, end, decimal);
  return 1.0 - decimal;
}
static double number(const APFloat &x) { return x.convertToFloat(); }

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

LogicalResult SgdOp::verify() {
  if (failed(verifyNotNegative(*this, "learning_rate", getLearningRate())) ||
      failed(verifyFraction(*this, "momentum", getMomentum())))
    return failure();
  if (getNesterov() && getMomentum().isZero())
    return emitOpError("expected a momentum above 0 with nesterov, found 0");
  return success();
}
StringRef SgdOp::getOptimizerName() { return "sgd"; }
SmallVector<StringRef> SgdOp::getSlotNames() {
  return getMomentum().isZero() ? SmallVector<StringRef>() : SmallVector<StringRef>{"momentum"};
}
SmallVector<Value> SgdOp::buildScalars(OpBuilder &, Value learningRate, Value) { return {learningRate}; }
SmallVector<Value> SgdOp::buildUpdate(OpBuilder &builder, ValueRange scalars, Value variable, Value gradient,
                                      ValueRange slots) {
  Expr w(builder, getLoc(), variable), g(builder, getLoc(), gradient), rate(builder, getLoc(), scalars[0]);
  if (slots.empty())
    return {(w - g * rate).value()};
  Expr m = Expr(builder, getLoc(), slots[0]) * number(getMomentum()) - g * rate;
  Expr step = getNesterov() ? m * number(getMomentum()) - g * rate : m;
  return {(w + step).value(), m.value()};
}

// lr sqrt(1 - beta_2^t) / (1 - beta_1^t), t = iteration + 1.
static Value adamAlpha(OpBuilder &builder, Location location, Value learningRate, Value iteration, const APFloat &beta1,
                       const APFloat &beta2) {
  Expr rate(builder, location, learningRate), t = toFloat(Expr(builder, location, iteration) + 1);
  return (rate * sqrt(1.0 - pow(number(beta2), t)) / (1.0 - pow(number(beta1), t))).value();
}
// m and v move towards g and g^2; epsilon stands outside the bias correction.
static SmallVector<Value> adamUpdate(Expr w, Expr g, Expr m, Expr v, Expr alpha, const APFloat &beta1,
                                     const APFloat &beta2, const APFloat &epsilon) {
  m = m + (g - m) * oneMinus(beta1);
  v = v + (square(g) - v) * oneMinus(beta2);
  return {(w - m * alpha / (sqrt(v) + number(epsilon))).value(), m.value(), v.value()};
}
template <typename Op> static LogicalResult verifyAdam(Op op) {
  return success(succeeded(verifyNotNegative(op, "learning_rate", op.getLearningRate())) &&
                 succeeded(verifyFraction(op, "beta_1", op.getBeta_1())) &&
                 succeeded(verifyFraction(op, "beta_2", op.getBeta_2())) &&
                 succeeded(verifyNotNegative(op, "epsilon", op.getEpsilon())));
}

LogicalResult AdamOp::verify() { return verifyAdam(*this); }
StringRef AdamOp::getOptimizerName() { return "adam"; }
SmallVector<StringRef> AdamOp::getSlotNames() { return {"momentum", "velocity"}; }
SmallVector<Value> AdamOp::buildScalars(OpBuilder &builder, Value learningRate, Value iteration) {
  return {adamAlpha(builder, getLoc(), learningRate, iteration, getBeta_1(), getBeta_2())};
}
SmallVector<Value> AdamOp::buildUpdate(OpBuilder &builder, ValueRange scalars, Value variable, Value gradient,
                                       ValueRange slots) {
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  return adamUpdate(e(variable), e(gradient), e(slots[0]), e(slots[1]), e(scalars[0]), getBeta_1(), getBeta_2(),
                    getEpsilon());
}

LogicalResult AdamWOp::verify() {
  if (failed(verifyNotNegative(*this, "weight_decay", getWeightDecay())))
    return failure();
  return verifyAdam(*this);
}
StringRef AdamWOp::getOptimizerName() { return "adam_w"; }
SmallVector<StringRef> AdamWOp::getSlotNames() { return {"momentum", "velocity"}; }
SmallVector<Value> AdamWOp::buildScalars(OpBuilder &builder, Value learningRate, Value iteration) {
  return {adamAlpha(builder, getLoc(), learningRate, iteration, getBeta_1(), getBeta_2()), learningRate};
}
SmallVector<Value> AdamWOp::buildUpdate(OpBuilder &builder, ValueRange scalars, Value variable, Value gradient,
                                        ValueRange slots) {
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  Expr w = e(variable), decayed = w - w * number(getWeightDecay()) * e(scalars[1]);
  return adamUpdate(decayed, e(gradient), e(slots[0]), e(slots[1]), e(scalars[0]), getBeta_1(), getBeta_2(),
                    getEpsilon());
}

LogicalResult RmspropOp::verify() {
  return success(succeeded(verifyNotNegative(*this, "learning_rate", getLearningRate())) &&
                 succeeded(verifyFraction(*this, "rho", getRho())) &&
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
SmallVector<Value> RmspropOp::buildScalars(OpBuilder &, Value learningRate, Value) { return {learningRate}; }
SmallVector<Value> RmspropOp::buildUpdate(OpBuilder &builder, ValueRange scalars, Value variable, Value gradient,
                                          ValueRange slots) {
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  Expr w = e(variable), g = e(gradient), rate = e(scalars[0]);
  double rho = number(getRho()), rest = oneMinus(getRho());
  Expr v = e(slots[0]) * rho + square(g) * rest, denominator = v + number(getEpsilon());
  SmallVector<Value> values = {Value(), v.value()};
  Value average;
  if (getCentered()) {
    Expr a = e(slots.back()) * rho + g * rest;
    denominator = v - square(a) + number(getEpsilon());
    average = a.value();
  }
  Expr step = g * rate / sqrt(denominator);
  if (!getMomentum().isZero()) {
    step = e(slots[1]) * number(getMomentum()) + step;
    values.push_back(step.value());
  }
  if (average)
    values.push_back(average);
  values[0] = (w - step).value();
  return values;
}

LogicalResult LionOp::verify() {
  return success(succeeded(verifyNotNegative(*this, "learning_rate", getLearningRate())) &&
                 succeeded(verifyFraction(*this, "beta_1", getBeta_1())) &&
                 succeeded(verifyFraction(*this, "beta_2", getBeta_2())));
}
StringRef LionOp::getOptimizerName() { return "lion"; }
SmallVector<StringRef> LionOp::getSlotNames() { return {"momentum"}; }
SmallVector<Value> LionOp::buildScalars(OpBuilder &, Value learningRate, Value) { return {learningRate}; }
// Here Keras subtracts in float32: 1 - 0.9f.
SmallVector<Value> LionOp::buildUpdate(OpBuilder &builder, ValueRange scalars, Value variable, Value gradient,
                                       ValueRange slots) {
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  Expr w = e(variable), g = e(gradient), m = e(slots[0]);
  double beta1 = number(getBeta_1()), beta2 = number(getBeta_2());
  Expr step = e(scalars[0]) * sign(m * beta1 + g * (1 - beta1));
  return {(w - step).value(), (m * beta2 + g * (1 - beta2)).value()};
}
