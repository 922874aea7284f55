// SPDX-License-Identifier: Apache-2.0
#include "compiler/differentiate/Declarations.h"

#include "compiler/differentiate/Initializers.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace mtc {

mt::VariableOp findIteration(mt::ModelOp model) {
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>())
    if (variable.getRole() == mt::VariableRole::iteration)
      return variable;
  return {};
}

namespace {
// The variables in the order of the plan: the model's, then the optimizer's, the iteration first. The loss scale comes
// before the first slot.
struct Order {
  SmallVector<mt::VariableOp> before, slots;

  explicit Order(mt::ModelOp model) {
    SmallVector<mt::VariableOp> optimizers;
    mt::VariableOp iteration = findIteration(model);
    for (mt::VariableOp variable : model.getOps<mt::VariableOp>())
      if (variable != iteration)
        (variable.isOfOptimizer() ? optimizers : before).push_back(variable);
    before.push_back(iteration);
    before.append(optimizers);
    auto *first = llvm::find_if(before, [](mt::VariableOp variable) { return variable.getSlot(); });
    slots.append(first, before.end());
    before.erase(first, before.end());
  }
};
} // namespace

static mt::VariableKind kindOf(mt::VariableOp variable) {
  return variable.getSlot()     ? mt::VariableKind::slot
         : variable.getFrozen() ? mt::VariableKind::non_trainable
                                : mt::VariableKind::trainable;
}

static void declare(OpBuilder &builder, mt::VariableOp variable) {
  auto declared = mt::DeclareOp::create(builder, variable.getLoc(), variable.getName(), kindOf(variable),
                                        variable.getType(), mt::VariableRoleAttr(), variable.getOfAttr());
  declared.setRole(variable.getRole());
}

LogicalResult declareVariables(OpBuilder &builder, mt::ModelOp model, const LossScale &scale) {
  llvm::StringSet<> names;
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>())
    names.insert(variable.getName());
  for (const LossScale::Variable &variable : scale.variables())
    if (!names.insert(variable.name).second)
      return model.emitOpError("expected no variable with the name of the optimizer's \"")
             << variable.name << "\", found one";
  Order order(model);
  for (mt::VariableOp variable : order.before)
    declare(builder, variable);
  for (const LossScale::Variable &variable : scale.variables())
    mt::DeclareOp::create(builder, model.findUpdate().getLoc(), variable.name, mt::VariableKind::non_trainable,
                          variable.type, mt::VariableRoleAttr(), StringAttr());
  for (mt::VariableOp variable : order.slots)
    declare(builder, variable);
  return success();
}

void assignFirstValues(OpBuilder &builder, mt::ModelOp model, const LossScale &scale) {
  auto assign = [&](Location location, StringRef name, Value value) {
    mt::AssignOp::create(builder, location, name, value, Value());
  };
  Order order(model);
  for (mt::VariableOp variable : order.before)
    assign(variable.getLoc(), variable.getName(), buildInitialValue(builder, variable));
  Location location = model.findUpdate().getLoc();
  for (const LossScale::Variable &variable : scale.variables())
    assign(location, variable.name, buildFilled(builder, location, variable.type, variable.start));
  for (mt::VariableOp variable : order.slots)
    assign(variable.getLoc(), variable.getName(), buildInitialValue(builder, variable));
}

} // namespace mtc
