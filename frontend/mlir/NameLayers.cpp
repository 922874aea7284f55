// SPDX-License-Identifier: Apache-2.0
#include "frontend/mlir/NameLayers.h"

#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Reads.h"
#include "dialects/mt/Update.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace mtc {

static StringRef nameIn(Location location) {
  StringRef result;
  location->walk([&](Location inner) {
    if (auto name = dyn_cast<NameLoc>(inner)) {
      result = name.getName().getValue();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return result;
}

// The variable that a value is, maybe as an argument of derivatives; null if it is none.
static mt::VariableOp variableOf(Value value) {
  while (auto argument = value.getDefiningOp<mt::ArgumentOp>())
    value = argument.getValue();
  return value.getDefiningOp<mt::VariableOp>();
}

static StringRef layerOf(Operation &op) {
  if (auto variable = dyn_cast<mt::VariableOp>(op))
    return variable.getName().contains('/') ? variable.getName().rsplit('/').first : variable.getName();
  StringRef layer;
  for (Value operand : op.getOperands())
    if (mt::VariableOp variable = variableOf(operand))
      return nameIn(variable.getLoc());
  for (Value operand : op.getOperands())
    if (Operation *maker = operand.getDefiningOp(); maker && layer.empty() && !isa<mt::InputOp>(maker))
      layer = nameIn(maker->getLoc());
  return layer.empty() ? op.getName().stripDialect() : layer;
}

// Adds to `reached` the ops and all ops on which they depend.
static void reach(ArrayRef<Operation *> ends, llvm::SmallSetVector<Operation *, 32> &reached) {
  reached.insert(ends.begin(), ends.end());
  for (size_t i = 0; i < reached.size(); ++i)
    mt::forEachRead(reached[i], [&](Value value) {
      if (Operation *maker = value.getDefiningOp())
        reached.insert(maker);
    });
}

static void nameModel(mt::ModelOp model) {
  Block &body = model.getBody().front();
  SmallVector<Operation *> outputs;
  for (auto output : body.getOps<mt::OutputOp>())
    outputs.push_back(output);
  llvm::SmallSetVector<Operation *, 32> forward;
  reach(outputs, forward);
  llvm::DenseMap<Operation *, StringRef> goals; // for ops that only a loss or metric reads, its name
  for (Operation &op : body) {
    StringRef name = isa<mt::LossOp, mt::MetricOp>(op) ? op.getAttrOfType<StringAttr>("name").getValue() : StringRef();
    if (name.empty() || forward.empty())
      continue;
    llvm::SmallSetVector<Operation *, 32> reached;
    reach({&op}, reached);
    for (Operation *inner : reached)
      if (!forward.contains(inner) && !isa<mt::TargetOp, mt::SampleWeightOp, mt::VariableOp>(inner))
        goals.try_emplace(inner, name);
  }
  auto nameOp = [&](Operation &op) {
    if (!nameIn(op.getLoc()).empty())
      return;
    StringRef layer = goals.contains(&op) ? goals.lookup(&op) : layerOf(op);
    if (isa<mt::InputOp, mt::TargetOp, mt::SampleWeightOp>(op))
      layer = op.getAttrOfType<StringAttr>("name").getValue();
    op.walk([&](Operation *inner) {
      inner->setLoc(NameLoc::get(StringAttr::get(op.getContext(), layer), inner->getLoc()));
    });
  };
  for (Operation &op : body) {
    if (isa<mt::UpdateOp>(op) && mt::isWholeStep(model)) // its layers are in its body
      for (Operation &inner : op.getRegion(0).front())
        nameOp(inner);
    else
      nameOp(op);
  }
}

static Location withoutLines(Location location) {
  auto name = location->findInstanceOf<NameLoc>();
  return name ? Location(NameLoc::get(name.getName())) : UnknownLoc::get(location.getContext());
}

void dropLines(ModuleOp module) {
  module->walk([](Operation *op) {
    op->setLoc(withoutLines(op->getLoc()));
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        argument.setLoc(withoutLines(argument.getLoc()));
  });
}

void nameLayers(ModuleOp module) {
  for (auto model : module.getOps<mt::ModelOp>())
    nameModel(model);
}

} // namespace mtc
