// SPDX-License-Identifier: Apache-2.0
#include "frontend/ChosenVariables.h"

#include "dialects/mt/Reads.h"
#include "dialects/mt/Update.h"
#include "dialects/mt/VariableMarks.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/GlobPattern.h"

#include <cmath>

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
    if (variable.isOfOptimizer() || !seen.insert(layer).second)
      continue;
    if (text.size() > most)
      return text + ", ...";
    text += (text.empty() ? "" : ", ") + layer.str();
  }
  return text;
}

// Names of the model's variables that a list of patterns matches.
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
      if (!variable.isOfOptimizer() && matches(*pattern, variable.getName())) {
        matched.insert(variable.getName());
        any = true;
      }
    if (!any)
      return model.emitError() << "expected layers or variables that " << option << " '" << text
                               << "' matches, found none among " << layersOf(model);
  }
  return success();
}

// "PATTERN=NUMBER[,...]", whose numbers end with `unit`: the number of each variable that a pattern matches.
LogicalResult matchNumbers(mt::ModelOp model, llvm::StringRef option, llvm::StringRef list, llvm::StringRef unit,
                           llvm::StringMap<double> &numbers) {
  SmallVector<llvm::StringRef> items;
  if (!list.empty())
    list.split(items, ',');
  for (llvm::StringRef item : items) {
    auto [pattern, text] = item.rsplit('=');
    double number = 0;
    if (!text.consume_back(unit) || text.getAsDouble(number) || !(number >= 0) ||
        !std::isfinite(static_cast<float>(number)))
      return model.emitError() << "expected NAMES=NUMBER" << unit << " with a finite number of 0 or more in " << option
                               << ", such as head*=10" << unit << ", found '" << item << "'";
    llvm::StringSet<> matched;
    if (failed(match(model, option, pattern, matched)))
      return failure();
    for (const auto &name : matched)
      numbers[name.getKey()] = number;
  }
  return success();
}

// Freezes what stands before the first variable of the model that a pattern matches.
LogicalResult freezeBefore(mt::ModelOp model, llvm::StringRef pattern, llvm::StringSet<> &frozen) {
  llvm::StringSet<> matched;
  if (failed(match(model, "freeze_until", pattern, matched)))
    return failure();
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>()) {
    if (variable.isOfOptimizer())
      continue;
    if (matched.contains(variable.getName()))
      break;
    frozen.insert(variable.getName());
  }
  return frozen.empty() ? model.emitError() << "expected a layer after the first one for freeze_until, found '"
                                            << pattern << "', before which no variable stands"
                        : success();
}

using Variables = llvm::DenseSet<mt::VariableOp>;

// The slots of an update on which the new value of another variable depends: of one that is no slot, or of `ends`.
Variables slotsInUse(mt::ModelOp model, mt::UpdateOp update, const Variables &ends) {
  llvm::StringSet<> others; // slots that are no ends
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>())
    if (variable.getSlot() && !ends.contains(variable))
      others.insert(variable.getName());
  Variables slots;
  llvm::DenseSet<Operation *> seen;
  SmallVector<Operation *> left;
  for (Operation &op : update.getBody().front()) {
    auto assign = dyn_cast<mt::AssignOp>(op);
    if (isa<mt::RateOp>(op) || (assign && !others.contains(assign.getName())))
      left.push_back(&op);
  }
  while (!left.empty())
    mt::forEachRead(left.pop_back_val(), [&](Value value) {
      Operation *op = value.getDefiningOp();
      if (!op || !seen.insert(op).second)
        return;
      auto variable = dyn_cast<mt::VariableOp>(op);
      if (!variable) {
        left.push_back(op);
      } else if (variable.getSlot() && slots.insert(variable).second) {
        if (mt::AssignOp assign = model.findAssign(variable.getName()))
          left.push_back(assign);
      }
    });
  return slots;
}

// Takes frozen variables out of a model's update: their gradients are zeros, as if no loss depended on them, they are
// not assigned, and the slots that served them alone are gone.
void freezeInUpdate(mt::ModelOp model, const llvm::StringSet<> &frozen) {
  mt::UpdateOp update = model.findUpdate();
  if (!update || frozen.empty())
    return;
  Block &body = update.getBody().front();
  Variables before = slotsInUse(model, update, {}), ends;
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>())
    if (variable.getSlot() && !before.contains(variable)) // such as an average
      ends.insert(variable);
  for (Operation &op : llvm::make_early_inc_range(body)) {
    if (auto gradient = dyn_cast<mt::GradientOp>(op); gradient && frozen.contains(gradient.getName())) {
      OpBuilder builder(gradient);
      auto type = cast<RankedTensorType>(gradient.getType());
      auto zeros = DenseElementsAttr::get(type, Attribute(builder.getFloatAttr(type.getElementType(), 0)));
      gradient.replaceAllUsesWith(mt::ConstantOp::create(builder, gradient.getLoc(), zeros).getResult());
      gradient.erase();
    } else if (auto assign = dyn_cast<mt::AssignOp>(op); assign && frozen.contains(assign.getName())) {
      assign.erase();
    }
  }
  for (mt::VariableOp slot : slotsInUse(model, update, ends))
    before.erase(slot);
  for (mt::VariableOp slot : before)
    if (mt::AssignOp assign = model.findAssign(slot.getName()))
      assign.erase();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (mt::VariableOp slot : before)
    if (slot.use_empty())
      slot.erase();
}

} // namespace

LogicalResult freezeVariables(mt::ModelOp model, const FreezeOptions &options, std::vector<std::string> &names) {
  if (!options.any())
    return success();
  if (mt::isWholeStep(model))
    return model.findUpdate().emitError(
        "expected a model that MTC differentiates for freeze, freeze_until and trainable, found a step "
        "that computes its own losses and says itself what it trains");
  llvm::StringSet<> frozen, trainable;
  if (!options.until.empty() && failed(freezeBefore(model, options.until, frozen)))
    return failure();
  if (!options.freeze.empty() && failed(match(model, "freeze", options.freeze, frozen)))
    return failure();
  if (!options.trainable.empty() && failed(match(model, "trainable", options.trainable, trainable)))
    return failure();
  auto isFrozen = [&](mt::VariableOp variable) {
    return frozen.contains(variable.getName()) ||
           (!options.trainable.empty() && !trainable.contains(variable.getName()));
  };
  bool trains = false;
  llvm::StringSet<> newly;
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>()) {
    if (variable.isTrainable() && isFrozen(variable)) {
      names.push_back(variable.getName().str());
      newly.insert(variable.getName());
      variable.setFrozen(true);
    }
    trains |= variable.isTrainable();
  }
  freezeInUpdate(model, newly);
  if (!trains)
    return model.emitError() << "expected at least one variable to train, found all of them frozen";
  for (mt::BatchNormalizationOp norm : model.getOps<mt::BatchNormalizationOp>())
    if (auto mean = norm.getMean().getDefiningOp<mt::VariableOp>(); mean && isFrozen(mean))
      norm.setFrozen(true);
  return success();
}

static LogicalResult excludeFromWeightDecay(mt::ModelOp model, llvm::StringRef patterns) {
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

LogicalResult setRates(mt::ModelOp model, const RateOptions &options) {
  llvm::StringRef option = !options.noDecay.empty()  ? "no_weight_decay"
                           : !options.rates.empty()  ? "rate"
                           : !options.decays.empty() ? "weight_decay"
                                                     : "";
  if (option.empty())
    return success();
  if (mt::UpdateOp update = model.findUpdate())
    return update.emitError("expected an optimizer for ")
           << option << ", found mt.update, whose formulas have the rates and the decays";
  if (!options.noDecay.empty() && failed(excludeFromWeightDecay(model, options.noDecay)))
    return failure();
  llvm::StringMap<double> rates, decays;
  if (failed(matchNumbers(model, "rate", options.rates, "x", rates)) ||
      failed(matchNumbers(model, "weight_decay", options.decays, "", decays)))
    return failure();
  Type real = mt::Compilation(model).realType();
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>()) {
    if (auto rate = rates.find(variable.getName()); rate != rates.end())
      if (auto factor = FloatAttr::get(real, rate->second); factor.getValueAsDouble() != 1)
        variable->setDiscardableAttr(mt::rateFactorName, factor);
    if (auto decay = decays.find(variable.getName()); decay != decays.end())
      variable->setDiscardableAttr(mt::weightDecayName, FloatAttr::get(real, decay->second));
  }
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
    if (variable.isTrainable() && !seen.contains(variable)) {
      emitWarning(variable.getLoc()) << "no loss depends on '" << variable.getName() << "', which stays as it is";
      names.push_back(variable.getName().str());
      variable.setFrozen(true);
    }
}

} // namespace mtc
