// SPDX-License-Identifier: Apache-2.0
//
// mt-expand-optimizer: replaces the optimizer of a model, such as mt.adam, by its variables and an mt.update, in Keras'
// order: clip, decay, update, average.
#include "compiler/Passes.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Expr.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Numbers.h"
#include "dialects/mt/Types.h"
#include "dialects/mt/VariableMarks.h"

#include "llvm/ADT/StringSet.h"

#include <map>

using namespace mlir;
using mt::Expr;

namespace mtc {
#define GEN_PASS_DEF_EXPANDOPTIMIZER
#include "compiler/Passes.h.inc"

namespace {

class Expansion {
public:
  Expansion(mt::ModelOp model, mt::OptimizerOpInterface op)
      : model(model), op(op), builder(op), prefix(op.getOptimizerName().str() + "/") {}

  LogicalResult run() {
    for (mt::VariableOp variable : model.getOps<mt::VariableOp>()) {
      names.insert(variable.getName());
      if (variable.isTrainable())
        trainable.push_back(variable);
    }
    addVariables();
    if (!taken.empty())
      return model.emitOpError("expected no variable with the name of the optimizer's \"") << taken << "\", found one";
    builder.setInsertionPointToEnd(op->getBlock()); // every value of the model may be read
    auto update = mt::UpdateOp::create(builder, op.getLoc());
    builder.setInsertionPointToStart(&update.getBody().emplaceBlock());
    buildBody();
    // A frozen variable may have the marks too.
    for (mt::VariableOp variable : model.getOps<mt::VariableOp>()) {
      variable.setNoWeightDecay(false);
      for (StringRef mark : mt::variableMarks)
        variable->removeAttr(mark);
    }
    op->erase();
    return success();
  }

private:
  struct Slots {
    SmallVector<mt::VariableOp> values;
    mt::VariableOp average;
  };

  Expr e(Value value) { return {builder, op.getLoc(), value}; }

  mt::VariableOp add(const std::string &name, Type type, double start, bool slot,
                     std::optional<mt::VariableRole> role = std::nullopt, StringAttr of = {}) {
    if (!names.insert(name).second && taken.empty())
      taken = name;
    mt::InitKind kind = start == 0 ? mt::InitKind::zeros : mt::InitKind::constant;
    auto made =
        mt::VariableOp::create(builder, op.getLoc(), type, name, kind, start == 0 ? FloatAttr() : startOf(type, start),
                               /*frozen=*/!slot);
    made.setSlot(slot);
    made.setRole(role);
    if (of)
      made.setOfAttr(of);
    return made;
  }

  // Iteration, learning rate (unless a schedule replaces it), state, and the slots of each trainable variable.
  void addVariables() {
    auto scalar = [&](Type element) { return RankedTensorType::get({}, element); };
    add(prefix + "iteration", scalar(builder.getI32Type()), 0, false, mt::VariableRole::iteration);
    if (!schedule())
      rate = add(prefix + "learning_rate", scalar(realType()), *option("learning_rate"), false,
                 mt::VariableRole::learning_rate);
    for (auto [name, start] : op.getState())
      state.push_back(add(prefix + name.str(), scalar(realType()), start, false));
    for (mt::VariableOp variable : trainable) {
      Slots &own = slots.emplace_back();
      for (StringRef slot : op.getSlotNames())
        own.values.push_back(add(slotName(variable, slot), variable.getType(), op.getSlotStart(), true));
      if (option("ema_momentum"))
        own.average = add(slotName(variable, "average"), variable.getType(), 0, true, mt::VariableRole::average,
                          variable.getNameAttr());
    }
  }

  Type realType() const { return mt::Compilation(op).realType(); }
  // The attribute of a variable's start; f32 where the variable has integers.
  FloatAttr startOf(Type type, double start) {
    Type element = mt::computedType(cast<RankedTensorType>(type).getElementType());
    return builder.getFloatAttr(element, element.isF32() ? static_cast<float>(start) : start);
  }

  std::string slotName(mt::VariableOp variable, StringRef slot) const {
    std::string name = variable.getName().str();
    std::replace(name.begin(), name.end(), '/', '_');
    return prefix + name + "_" + slot.str();
  }

  std::optional<double> option(StringRef name) {
    std::optional<Attribute> attribute = op->getInherentAttr(name);
    auto number = attribute ? dyn_cast_or_null<FloatAttr>(*attribute) : FloatAttr();
    return number ? std::optional(number.getValueAsDouble()) : std::nullopt;
  }

  // Result of the model's schedule; null if the learning rate is a variable.
  Value schedule() { return op->getNumOperands() ? op->getOperand(0) : Value(); }

  void assign(mt::VariableOp variable, Value value) {
    mt::AssignOp::create(builder, op.getLoc(), variable.getName(), value, Value());
  }

  // Variables with one learning rate share its scalars.
  struct Group {
    Value rate;
    SmallVector<Value> scalars;
  };
  Group group(double factor, Value iteration);
  void buildBody();
  void clip(SmallVectorImpl<Value> &gradients);
  Value decayed(mt::VariableOp variable, Value gradient);
  void average(mt::VariableOp average, Value iteration, Value &value);

  mt::ModelOp model;
  mt::OptimizerOpInterface op;
  OpBuilder builder;
  std::string prefix;
  llvm::StringSet<> names;
  std::string taken; // a name that the model and the optimizer both use
  SmallVector<mt::VariableOp> trainable, state;
  SmallVector<Slots> slots; // of each trainable variable
  Value rate;
};

void Expansion::buildBody() {
  Value iteration = mt::IterationOp::create(builder, op.getLoc(), RankedTensorType::get({}, builder.getI32Type()));
  if (Value scheduled = schedule()) {
    mt::RateOp::create(builder, op.getLoc(), scheduled);
    rate = scheduled;
  }
  SmallVector<Value> gradients;
  for (mt::VariableOp variable : trainable)
    gradients.push_back(
        mt::GradientOp::create(builder, op.getLoc(), variable.getType(), variable.getName(), /*required=*/true));
  clip(gradients);
  // New values of the optimizer's state do not depend on the rate: the first group assigns them.
  auto factorOf = [](mt::VariableOp variable) { return mt::markOf(variable, mt::rateFactorName).value_or(1); };
  std::map<double, Group> groups;
  for (mt::VariableOp variable : trainable) {
    auto [made, isNew] = groups.try_emplace(factorOf(variable));
    if (!isNew)
      continue;
    made->second = group(made->first, iteration);
    if (groups.size() == 1)
      for (auto [own, value] : llvm::zip(state, made->second.scalars))
        assign(own, value);
  }
  for (auto [variable, gradient, own] : llvm::zip_equal(trainable, gradients, slots)) {
    Value old = variable;
    const Group &rates = groups.at(factorOf(variable));
    double decay = variable.getNoWeightDecay()
                       ? 0
                       : mt::markOf(variable, mt::weightDecayName).value_or(option("weight_decay").value_or(0));
    Value value = decay != 0 ? (e(old) - e(old) * decay * e(rates.rate)).value() : old;
    Value total = decayed(variable, gradient);
    SmallVector<Value> updated =
        op.buildUpdate(builder, rates.scalars, value, total, llvm::to_vector_of<Value>(own.values));
    if (own.average)
      average(own.average, iteration, updated[0]);
    assign(variable, updated[0]);
    for (auto [slot, after] : llvm::zip_equal(own.values, llvm::drop_begin(updated)))
      assign(slot, after);
  }
}

Expansion::Group Expansion::group(double factor, Value iteration) {
  Value own = factor == 1 ? rate : (e(rate) * factor).value();
  return {own, op.buildScalars(builder, own, iteration, llvm::to_vector_of<Value>(state))};
}

void Expansion::clip(SmallVectorImpl<Value> &gradients) {
  if (std::optional<double> bound = option("clipvalue"))
    for (Value &gradient : gradients)
      gradient = minimum(maximum(e(gradient), -*bound), *bound).value();
  if (std::optional<double> bound = option("clipnorm"))
    for (Value &gradient : gradients) {
      Expr norm = sqrt(sumAll(square(e(gradient))));
      gradient = (e(gradient) * *bound / maximum(norm, *bound)).value();
    }
  std::optional<double> bound = option("global_clipnorm");
  if (!bound || gradients.empty())
    return;
  Expr squares = sumAll(square(e(gradients[0])));
  for (Value gradient : llvm::drop_begin(gradients))
    squares = squares + sumAll(square(e(gradient)));
  Expr norm = sqrt(squares);
  // norm - norm is 0, or NaN if the norm is not finite.
  Expr factor = minimum(1.0 / norm, 1 / *bound) * *bound + (norm - norm);
  for (Value &gradient : gradients)
    gradient = (e(gradient) * factor).value();
}

// Adds the variable's mt.gradient_decay to a clipped gradient.
Value Expansion::decayed(mt::VariableOp variable, Value gradient) {
  double decay = mt::markOf(variable, mt::gradientDecayName).value_or(0);
  return decay == 0 ? gradient : (e(gradient) + e(variable) * decay).value();
}

// Updates the average of a variable; the first step copies. Every ema_overwrite_frequency steps the variable becomes
// its average.
void Expansion::average(mt::VariableOp average, Value iteration, Value &value) {
  Expr momentum = select(e(iteration) == 0.0, Expr(0.0), Expr(*option("ema_momentum")));
  Expr averaged = e(average) * momentum + e(value) * (1.0 - momentum);
  assign(average, averaged.value());
  std::optional<Attribute> frequency = op->getInherentAttr("ema_overwrite_frequency");
  if (!frequency || !*frequency)
    return;
  double every = static_cast<double>(cast<IntegerAttr>(*frequency).getInt());
  Expr t = toFloat(e(iteration) + 1);
  value = select(floor(t / every) * every == t, averaged, e(value)).value();
}

struct ExpandOptimizer : impl::ExpandOptimizerBase<ExpandOptimizer> {
  using ExpandOptimizerBase::ExpandOptimizerBase;

  void runOnOperation() override {
    for (auto model : getOperation().getOps<mt::ModelOp>())
      for (auto op : llvm::to_vector(model.getOps<mt::OptimizerOpInterface>()))
        if (failed(Expansion(model, op).run()))
          return signalPassFailure();
  }
};

} // namespace
} // namespace mtc
