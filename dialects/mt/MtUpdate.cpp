// SPDX-License-Identifier: Apache-2.0
//
// mt.update, the derivatives in it, and the variables of an optimizer.
#include "dialects/mt/Update.h"

#include "dialects/mt/VariableMarks.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::mt;

UpdateOp ModelOp::findUpdate() {
  auto updates = getBody().front().getOps<UpdateOp>();
  return updates.empty() ? UpdateOp() : *updates.begin();
}

bool ModelOp::reportsInUpdate() {
  UpdateOp update = findUpdate();
  return update && !update.getBody().front().getOps<ResultOp>().empty();
}

bool mlir::mt::isWholeStep(ModelOp model) {
  UpdateOp update = model.findUpdate();
  return model.reportsInUpdate() || (update && !update.getBody().front().getOps<DerivativeOp>().empty());
}

AssignOp ModelOp::findAssign(StringRef variable) {
  if (UpdateOp update = findUpdate())
    for (auto assign : update.getBody().front().getOps<AssignOp>())
      if (assign.getName() == variable)
        return assign;
  return {};
}

bool VariableOp::isOfOptimizer() {
  if (getSlot() || getRole())
    return true;
  if (!getFrozen())
    return false;
  auto isInUpdate = [](Operation *user) { return bool(user->getParentOfType<UpdateOp>()); };
  auto model = dyn_cast<ModelOp>((*this)->getParentOp());
  return use_empty() ? model && model.findAssign(getName()) : llvm::all_of((*this)->getUsers(), isInUpdate);
}

LogicalResult UpdateOp::verify() {
  if (!isa<ModelOp>((*this)->getParentOp()))
    return emitOpError("expected mt.update in an mt.model, found it elsewhere");
  return success();
}

LogicalResult GradientOp::verify() {
  if (!isa<UpdateOp>((*this)->getParentOp()))
    return emitOpError("expected mt.gradient in the body of mt.update, found it elsewhere");
  return success();
}

static LogicalResult verifyPlace(Operation *op) {
  if (!isa<ModelOp, UpdateOp>(op->getParentOp()))
    return op->emitOpError("expected this op in the body of mt.model or mt.update, found it elsewhere");
  return success();
}

LogicalResult ArgumentOp::verify() { return verifyPlace(*this); }

LogicalResult DerivativeOp::verify() {
  if (failed(verifyPlace(*this)))
    return failure();
  if (!getArgument().getDefiningOp<ArgumentOp>())
    return emitOpError("expected an mt.argument by which to differentiate, found another value");
  return success();
}

// The result is the operand.
void ArgumentOp::buildGradient(OpBuilder &, ValueRange resultGradients, SmallVectorImpl<Value> &operandGradients) {
  operandGradients.push_back(resultGradients[0]);
}

// Whether mt.update may hold the op.
static bool fitsUpdate(Operation *op) {
  return isa<GradientOp, ArgumentOp, DerivativeOp, AssignOp, ResultOp, RateOp, IterationOp, InterpretOpInterface,
             TrainingOpInterface, ScanOp>(op);
}

LogicalResult UpdateOp::verifyRegions() {
  if (getBody().getNumArguments())
    return emitOpError("expected a body without arguments, found ") << getBody().getNumArguments();
  Operation *rate = nullptr;
  for (Operation &op : getBody().front()) {
    if (op.getName().getDialectNamespace() == "graph") // until `graph-layout`
      continue;
    if (!fitsUpdate(&op))
      return op.emitOpError("expected a computation, mt.gradient, mt.argument, mt.derivative, mt.assign, mt.result or "
                            "mt.rate inside mt.update, found this");
    if (isa<RateOp>(op) && std::exchange(rate, &op))
      return op.emitOpError("expected one mt.rate in mt.update, found a second");
  }
  return success();
}

static LogicalResult verifyGradient(GradientOp op, VariableOp variable, bool hasLoss) {
  if (!variable)
    return op.emitOpError("expected the name of a trainable variable, found \"") << op.getName() << "\", which is none";
  if (!variable.isTrainable()) {
    InFlightDiagnostic error = op.emitOpError("expected a trainable variable, found ")
                               << (variable.getSlot() ? "the slot \"" : "the frozen variable \"") << op.getName()
                               << '"';
    error.attachNote(variable.getLoc()) << "the variable is here";
    return error;
  }
  if (op.getType() != variable.getType())
    return op.emitOpError("expected ") << variable.getType() << ", the type of \"" << op.getName() << "\", found "
                                       << op.getType();
  if (!hasLoss)
    return op.emitOpError("expected an mt.loss, whose gradient this is, found none");
  return success();
}

static LogicalResult verifyAssign(AssignOp op, VariableOp variable) {
  if (!variable)
    return op.emitOpError("expected the name of a variable of the model, found \"")
           << op.getName() << "\", which is none";
  if (op.getApply())
    return op.emitOpError("expected no condition in mt.update, found one");
  if (variable.getRole() == VariableRole::iteration)
    return op.emitOpError("expected another variable than that with role(iteration), which the compiler increments, "
                          "found \"")
           << op.getName() << '"';
  if (op.getValue().getType() != variable.getType())
    return op.emitOpError("expected ") << variable.getType() << ", the type of \"" << op.getName() << "\", found "
                                       << op.getValue().getType();
  return success();
}

// Checks the roles of variables: one iteration, at most one learning rate, averages of variables.
static LogicalResult verifyRoles(ModelOp model, const llvm::StringMap<VariableOp> &variables) {
  VariableOp iteration, rate;
  for (VariableOp variable : model.getOps<VariableOp>()) {
    std::optional<VariableRole> role = variable.getRole();
    if (role == VariableRole::iteration && std::exchange(iteration, variable))
      return variable.emitOpError("expected one variable with role(iteration), found a second");
    if (role == VariableRole::learning_rate && std::exchange(rate, variable))
      return variable.emitOpError("expected one variable with role(learning_rate) at most, found a second");
    if (role != VariableRole::average)
      continue;
    VariableOp of = variables.lookup(*variable.getOf());
    if (!of || of.getType() != variable.getType() || of == variable)
      return variable.emitOpError("expected an average of another variable of type ")
             << variable.getType() << ", found \"" << *variable.getOf() << "\", which is none";
  }
  if (!iteration)
    return model.findUpdate().emitOpError("expected a variable with role(iteration) in a model with mt.update, "
                                          "found none");
  return success();
}

// In a model with a short form, slots and roles belong to the optimizer.
static LogicalResult verifyShortForm(ModelOp model) {
  for (VariableOp variable : model.getOps<VariableOp>())
    if (variable.getSlot() || variable.getRole())
      return variable.emitOpError("expected a variable without `slot` and `role` in a model without mt.update, found ")
             << (variable.getSlot() ? "`slot`" : "`role`");
  return success();
}

LogicalResult mlir::mt::verifyUpdate(ModelOp model) {
  UpdateOp update = model.findUpdate();
  if (!update)
    return verifyShortForm(model);
  llvm::StringMap<VariableOp> variables;
  for (VariableOp variable : model.getOps<VariableOp>()) {
    variables[variable.getName()] = variable;
    StringRef mark = variable.getNoWeightDecay() ? StringRef("no_weight_decay") : StringRef();
    for (StringRef name : variableMarks)
      if (variable->hasAttr(name))
        mark = name;
    if (!mark.empty())
      return variable.emitOpError(
                 "expected no mark for rates and decays in a model with mt.update, whose formulas have "
                 "them, found ")
             << mark;
  }
  llvm::StringMap<Operation *> assigned;
  bool hasLoss = !model.getOps<LossOp>().empty();
  for (Operation &op : update.getBody().front()) {
    if (auto gradient = dyn_cast<GradientOp>(op);
        gradient && failed(verifyGradient(gradient, variables.lookup(gradient.getName()), hasLoss)))
      return failure();
    auto assign = dyn_cast<AssignOp>(op);
    if (!assign)
      continue;
    if (failed(verifyAssign(assign, variables.lookup(assign.getName()))))
      return failure();
    auto [first, isNew] = assigned.try_emplace(assign.getName(), &op);
    if (isNew)
      continue;
    InFlightDiagnostic error = op.emitOpError("expected one assignment of a variable, found a second of \"")
                               << assign.getName() << '"';
    error.attachNote(first->second->getLoc()) << "the first is here";
    return error;
  }
  return verifyRoles(model, variables);
}
