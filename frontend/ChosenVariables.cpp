// SPDX-License-Identifier: Apache-2.0
#include "frontend/ChosenVariables.h"

#include "dialects/mt/Reads.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;

namespace mtc {
namespace {

// "dense/kernel": "dense/kernel" or "dense", of a model in a model the outer folders too.
bool matches(const llvm::GlobPattern &pattern, llvm::StringRef name) {
  for (size_t end = name.size(); end != llvm::StringRef::npos; end = name.rfind('/', end))
    if (pattern.match(name.take_front(end)) || end == 0)
      return end != 0;
  return false;
}

// Layers of the model, for a message: at most a screen of them.
std::string layersOf(mt::ModelOp model) {
  constexpr size_t most = 600;
  std::string text;
  llvm::StringSet<> seen;
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>()) {
    llvm::StringRef name = variable.getName(), layer = name.take_front(name.rfind('/'));
    if (!seen.insert(layer).second)
      continue;
    if (text.size() > most)
      return text + ", ...";
    text += (text.empty() ? "" : ", ") + layer.str();
  }
  return text;
}

// Names of the variables that a list of patterns matches.
LogicalResult match(mt::ModelOp model, llvm::StringRef option, llvm::StringRef list, llvm::StringSet<> &matched) {
  SmallVector<llvm::StringRef> patterns;
  list.split(patterns, ',');
  for (llvm::StringRef text : patterns) {
    auto pattern = llvm::GlobPattern::create(text);
    if (!pattern || text.empty()) {
      std::string reason = pattern ? "" : ": " + llvm::toString(pattern.takeError());
      return model.emitError() << "expected patterns of names in " << option << ", found '" << text << "'" << reason;
    }
    bool any = false;
    for (mt::VariableOp variable : model.getOps<mt::VariableOp>())
      if (matches(*pattern, variable.getName())) {
        matched.insert(variable.getName());
        any = true;
      }
    if (!any)
      return model.emitError() << "expected layers or variables that " << option << " '" << text
                               << "' matches, found none among " << layersOf(model);
  }
  return success();
}

} // namespace

LogicalResult freezeVariables(mt::ModelOp model, const FreezeOptions &options, std::vector<std::string> &names) {
  if (!options.any())
    return success();
  llvm::StringSet<> frozen, trainable;
  if (!options.freeze.empty() && failed(match(model, "freeze", options.freeze, frozen)))
    return failure();
  if (!options.trainable.empty() && failed(match(model, "trainable", options.trainable, trainable)))
    return failure();
  auto isFrozen = [&](mt::VariableOp variable) {
    return frozen.contains(variable.getName()) ||
           (!options.trainable.empty() && !trainable.contains(variable.getName()));
  };
  bool trains = false;
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>()) {
    if (!variable.getFrozen() && isFrozen(variable)) {
      names.push_back(variable.getName().str());
      variable.setFrozen(true);
    }
    trains |= !variable.getFrozen();
  }
  if (!trains)
    return model.emitError() << "expected at least one variable to train, found all of them frozen";
  for (mt::BatchNormalizationOp norm : model.getOps<mt::BatchNormalizationOp>())
    if (auto mean = norm.getMean().getDefiningOp<mt::VariableOp>(); mean && isFrozen(mean))
      norm.setFrozen(true);
  return success();
}

LogicalResult excludeFromWeightDecay(mt::ModelOp model, llvm::StringRef patterns) {
  if (patterns.empty())
    return success();
  for (auto optimizer : model.getOps<mt::OptimizerOpInterface>()) {
    std::optional<Attribute> decay = optimizer->getInherentAttr("weight_decay");
    if (!decay || cast<FloatAttr>(*decay).getValue().isZero())
      return optimizer.emitError() << "expected an optimizer with weight decay for no_weight_decay, found "
                                   << optimizer.getOptimizerName() << " without";
  }
  llvm::StringSet<> matched;
  if (failed(match(model, "no_weight_decay", patterns, matched)))
    return failure();
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>())
    if (matched.contains(variable.getName()))
      variable.setNoWeightDecay(true);
  return success();
}

void freezeUnused(mt::ModelOp model, std::vector<std::string> &names) {
  llvm::DenseSet<Operation *> seen;
  SmallVector<Operation *> left;
  for (Operation &op : model.getBody().front())
    if (isa<mt::LossOp, mt::RegularizerOp>(op) && seen.insert(&op).second)
      left.push_back(&op);
  while (!left.empty())
    if (Operation *reader = left.pop_back_val(); !isa<mt::StopGradientOp>(reader))
      mt::forEachRead(reader, [&](Value value) {
        if (Operation *op = value.getDefiningOp(); op && seen.insert(op).second)
          left.push_back(op);
      });
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>())
    if (!variable.getFrozen() && !seen.contains(variable)) {
      emitWarning(variable.getLoc()) << "no loss depends on '" << variable.getName() << "', which stays as it is";
      names.push_back(variable.getName().str());
      variable.setFrozen(true);
    }
}

} // namespace mtc
