// SPDX-License-Identifier: Apache-2.0
#include "compiler/Passes.h"
#include "compiler/differentiate/Gradient.h"
#include "compiler/differentiate/Initializers.h"
#include "compiler/differentiate/Limits.h"
#include "compiler/differentiate/LossScale.h"
#include "compiler/differentiate/Objective.h"
#include "compiler/differentiate/Simplify.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Expr.h"
#include "dialects/mt/Reads.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "compiler/Passes.h.inc"

namespace {

mt::VariableOp findIteration(mt::ModelOp model) {
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>())
    if (variable.getRole() == mt::VariableRole::iteration)
      return variable;
  return {};
}

// "adam/iteration" -> "adam/"
std::string folderOf(mt::VariableOp variable) {
  StringRef name = variable.getName();
  return name.take_front(name.rfind('/') + 1).str(); // npos + 1 is 0
}

// Builds the declarations and the four programs that replace one model.
class Programs {
public:
  explicit Programs(mt::ModelOp model)
      : model(model), update(model.findUpdate()), iteration(findIteration(model)), builder(model),
        scale(model, folderOf(iteration)) {}

  LogicalResult build() {
    setLimits(model);
    if (failed(declare()))
      return failure();
    buildInit();
    if (failed(buildTrainStep()))
      return failure();
    if (failed(buildEvalStep()) || failed(buildPredict()))
      return failure();
    model.erase();
    return success();
  }

private:
  LogicalResult declare();
  void buildInit();
  LogicalResult buildTrainStep();
  LogicalResult buildEvalStep();
  LogicalResult buildPredict();

  void addDeclaration(Location location, StringRef name, mt::VariableKind kind, RankedTensorType type,
                      std::optional<mt::VariableRole> role = std::nullopt, StringAttr of = {});
  // The variables in the order of the plan: the model's, then the optimizer's, the iteration first. The loss scale
  // comes before the first slot, whose index is `slots`.
  SmallVector<mt::VariableOp> order(size_t &slots);
  // Builds the gradients that mt.update names.
  LogicalResult buildGradientsOf(Value loss, llvm::StringMap<Value> &gradients);
  LogicalResult buildUpdate(llvm::StringMap<Value> &gradients);

  // Starts a program and copies the model's computations into it.
  mt::ProgramOp begin(StringRef name);
  LogicalResult copyForward(bool training);
  void mapReads(Operation *op);
  // Changes an op of train_step to its training form, and assigns the variables that the op updates.
  LogicalResult beginTraining(Operation &original, mt::TrainingOpInterface op);
  void finish(mt::ProgramOp program);
  // Reports each loss and metric; returns the total loss.
  Value buildResults();
  Value read(mt::VariableOp variable) {
    return mt::ReadOp::create(builder, variable.getLoc(), variable.getType(), variable.getName());
  }
  void assign(Location location, StringRef name, Value value) {
    mt::AssignOp::create(builder, location, name, value, Value());
  }
  void report(Location location, StringRef name, Mean mean, bool loss, mt::Finalizer finalizer = mt::Finalizer::mean,
              mt::Better better = mt::Better::lower) {
    mt::ResultOp::create(builder, location, name, mean.value, mean.weight, loss, finalizer, better);
  }

  mt::ModelOp model;
  mt::UpdateOp update;
  mt::VariableOp iteration;
  OpBuilder builder;
  LossScale scale;
  Value apply;                                  // whether the step is applied, tensor<i1>; null: always
  llvm::DenseMap<mt::VariableOp, Value> before; // values of variables before the step
  IRMapping values;                             // from values of the model to values of the program under construction
  llvm::SmallSetVector<mt::VariableOp, 8> changed; // variables that the forward pass of train_step updates
};

SmallVector<mt::VariableOp> Programs::order(size_t &slots) {
  SmallVector<mt::VariableOp> models, optimizers;
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>())
    if (variable != iteration)
      (variable.isOfOptimizer() ? optimizers : models).push_back(variable);
  models.push_back(iteration);
  models.append(optimizers);
  slots = llvm::find_if(models, [](mt::VariableOp variable) { return variable.getSlot(); }) - models.begin();
  return models;
}

void Programs::addDeclaration(Location location, StringRef name, mt::VariableKind kind, RankedTensorType type,
                              std::optional<mt::VariableRole> role, StringAttr of) {
  auto declared = mt::DeclareOp::create(builder, location, name, kind, type, mt::VariableRoleAttr(), StringAttr());
  declared.setRole(role);
  if (of)
    declared.setOfAttr(of);
}

static mt::VariableKind kindOf(mt::VariableOp variable) {
  return variable.getSlot()     ? mt::VariableKind::slot
         : variable.getFrozen() ? mt::VariableKind::non_trainable
                                : mt::VariableKind::trainable;
}

LogicalResult Programs::declare() {
  llvm::StringSet<> names;
  size_t slots = 0;
  SmallVector<mt::VariableOp> variables = order(slots);
  for (mt::VariableOp variable : variables)
    names.insert(variable.getName());
  for (const LossScale::Variable &variable : scale.variables())
    if (!names.insert(variable.name).second)
      return model.emitOpError("expected no variable with the name of the optimizer's \"")
             << variable.name << "\", found one";
  auto declareScale = [&] {
    for (const LossScale::Variable &variable : scale.variables())
      addDeclaration(update.getLoc(), variable.name, mt::VariableKind::non_trainable, variable.type);
  };
  for (auto [index, variable] : llvm::enumerate(variables)) {
    if (index == slots)
      declareScale();
    addDeclaration(variable.getLoc(), variable.getName(), kindOf(variable), cast<RankedTensorType>(variable.getType()),
                   variable.getRole(), variable.getOfAttr());
  }
  if (slots == variables.size())
    declareScale();
  return success();
}

// The ops of an update are computed in f32 in plans of every precision.
static void keepFloat32(Operation *op) {
  op->walk([](Operation *inner) {
    if (inner->hasTrait<mt::Contraction>())
      mt::setPrecision(inner, StringAttr::get(inner->getContext(), "f32"));
  });
}

// Reads the variables that the op is the first to use.
void Programs::mapReads(Operation *op) {
  mt::forEachRead(op, [&](Value value) {
    auto variable = value.getDefiningOp<mt::VariableOp>();
    if (variable && !values.contains(value))
      values.map(value, before[variable] = read(variable));
  });
}

mt::ProgramOp Programs::begin(StringRef name) {
  auto program = mt::ProgramOp::create(builder, model.getLoc(), name);
  builder.setInsertionPointToStart(&program.getBody().emplaceBlock());
  values.clear();
  before.clear();
  return program;
}

void Programs::finish(mt::ProgramOp program) {
  simplify(program);
  builder.setInsertionPoint(model);
}

LogicalResult Programs::copyForward(bool training) {
  for (Operation &op : model.getBody().front()) {
    if (auto variable = dyn_cast<mt::VariableOp>(op)) {
      if (!variable.isOfOptimizer()) // mt.update reads the others
        values.map(variable.getResult(), before[variable] = read(variable));
    } else if (auto step = dyn_cast<mt::IterationOp>(op)) {
      values.map(step.getResult(), read(iteration));
    } else if (!isa<mt::UpdateOp>(op)) {
      mapReads(&op);
      if (isa<mt::LossOp, mt::RegularizerOp, mt::MetricOp, mt::OutputOp>(op))
        continue;
      Operation *copy = builder.clone(op, values);
      if (auto layer = dyn_cast<mt::TrainingOpInterface>(copy); layer && training && failed(beginTraining(op, layer)))
        return failure();
    }
  }
  return success();
}

// If two ops update a variable, the second op reads the value that the first op assigned.
LogicalResult Programs::beginTraining(Operation &original, mt::TrainingOpInterface op) {
  SmallVector<std::pair<unsigned, Value>> updates;
  OpBuilder atLayer(op);
  auto step = mt::ReadOp::create(atLayer, iteration.getLoc(), iteration.getType(), iteration.getName());
  op.beginTraining(builder, step, updates);
  for (auto [operand, value] : updates) {
    auto variable = original.getOperand(operand).getDefiningOp<mt::VariableOp>();
    if (!variable || !variable.getFrozen())
      return original.emitOpError("expected operand ")
             << operand << " to be a frozen variable, which train_step changes, found another value";
    values.map(variable.getResult(), value);
    changed.insert(variable);
  }
  return success();
}

void Programs::buildInit() {
  begin("init");
  size_t slots = 0;
  SmallVector<mt::VariableOp> variables = order(slots);
  auto assignScale = [&] {
    for (const LossScale::Variable &variable : scale.variables())
      assign(update.getLoc(), variable.name, buildFilled(builder, update.getLoc(), variable.type, variable.start));
  };
  for (auto [index, variable] : llvm::enumerate(variables)) {
    if (index == slots)
      assignScale();
    assign(variable.getLoc(), variable.getName(), buildInitialValue(builder, variable));
  }
  if (slots == variables.size())
    assignScale();
  // The program is not simplified: each variable keeps a value of its own, which can be computed in the variable's
  // buffer.
  builder.setInsertionPoint(model);
}

Value Programs::buildResults() {
  SmallVector<mt::LossOp> losses(model.getOps<mt::LossOp>());
  Mean total;
  for (mt::LossOp loss : losses) {
    Mean mean = buildLoss(builder, loss, values.lookup(loss.getValues()), values.lookupOrNull(loss.getWeights()));
    Value part = scaleLoss(builder, loss, mean.value);
    total.value = total.value ? mt::AddOp::create(builder, loss.getLoc(), total.value, part).getResult() : part;
    total.weight = mean.weight;
    // A single loss is reported as the total, whatever its name. Several losses are reported without their scales.
    if (losses.size() > 1)
      report(loss.getLoc(), loss.getName(), mean, /*loss=*/true);
  }
  for (mt::RegularizerOp regularizer : model.getOps<mt::RegularizerOp>())
    if (Value added = buildRegularizer(builder, regularizer, values.lookup(regularizer.getValue())))
      total.value = mt::AddOp::create(builder, regularizer.getLoc(), total.value, added);
  report(losses[0].getLoc(), "loss", total, /*loss=*/true);
  for (mt::MetricOp metric : model.getOps<mt::MetricOp>())
    report(metric.getLoc(), metric.getName(),
           buildMetric(builder, metric, values.lookup(metric.getValues()), values.lookupOrNull(metric.getWeights())),
           false, metric.getFinalizer(), *metric.findBetter());
  return total.value;
}

LogicalResult Programs::buildGradientsOf(Value loss, llvm::StringMap<Value> &gradients) {
  llvm::StringMap<bool> named; // whether a differentiable path is required
  for (auto gradient : update.getBody().front().getOps<mt::GradientOp>())
    named[gradient.getName()] |= gradient.getRequired();
  SmallVector<mt::VariableOp> variables;
  SmallVector<Value> reads;
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>())
    if (named.contains(variable.getName())) {
      variables.push_back(variable);
      reads.push_back(before.at(variable));
    }
  FailureOr<SmallVector<Value>> built = buildGradients(builder, loss, scale.read(builder, update.getLoc()), reads);
  if (failed(built))
    return failure();
  for (auto [variable, gradient] : llvm::zip(variables, *built)) {
    if (gradient)
      continue;
    if (named.lookup(variable.getName()))
      return variable.emitOpError("expected a differentiable path from \"")
             << variable.getName() << "\" to a loss, found none: make it `frozen`";
    gradient = buildFilled(builder, update.getLoc(), cast<RankedTensorType>(variable.getType()), 0);
  }
  apply = scale.unscale(builder, update.getLoc(), *built);
  for (auto [variable, gradient] : llvm::zip(variables, *built))
    gradients[variable.getName()] = gradient;
  return success();
}

LogicalResult Programs::buildUpdate(llvm::StringMap<Value> &gradients) {
  for (auto [variable, value] : before)
    values.map(variable->getResult(0), value); // also where the forward pass changes the variable
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>())
    if (variable.getRole() == mt::VariableRole::learning_rate && !before.contains(variable))
      values.map(variable.getResult(), before[variable] = read(variable));
  for (Operation &op : update.getBody().front()) {
    mapReads(&op);
    if (auto gradient = dyn_cast<mt::GradientOp>(op)) {
      values.map(gradient.getResult(), gradients.lookup(gradient.getName()));
    } else if (auto step = dyn_cast<mt::IterationOp>(op)) {
      values.map(step.getResult(), read(iteration));
    } else if (auto assign = dyn_cast<mt::AssignOp>(op)) {
      if (llvm::any_of(changed, [&](mt::VariableOp variable) { return variable.getName() == assign.getName(); }))
        return op.emitOpError("expected a variable that the forward pass does not change, found \"")
               << assign.getName() << '"';
      mt::AssignOp::create(builder, op.getLoc(), assign.getName(), values.lookup(assign.getValue()), apply);
    } else {
      keepFloat32(builder.clone(op, values));
    }
  }
  Expr steps(builder, update.getLoc(), read(iteration));
  mt::AssignOp::create(builder, update.getLoc(), iteration.getName(), (steps + 1).value(), apply);
  return success();
}

LogicalResult Programs::buildTrainStep() {
  mt::ProgramOp program = begin("train_step");
  if (failed(copyForward(/*training=*/true)))
    return failure();
  Value loss = buildResults();
  SmallVector<std::pair<mt::VariableOp, Value>> after;
  for (mt::VariableOp variable : changed)
    after.push_back({variable, values.lookup(variable.getResult())});
  llvm::StringMap<Value> gradients;
  if (failed(buildGradientsOf(loss, gradients)) || failed(buildUpdate(gradients)))
    return failure();
  for (auto [variable, value] : after)
    mt::AssignOp::create(builder, variable.getLoc(), variable.getName(), value, apply);
  finish(program);
  return success();
}

LogicalResult Programs::buildEvalStep() {
  mt::ProgramOp program = begin("eval_step");
  if (failed(copyForward(/*training=*/false)))
    return failure();
  buildResults();
  finish(program);
  return success();
}

LogicalResult Programs::buildPredict() {
  mt::ProgramOp program = begin("predict");
  if (failed(copyForward(/*training=*/false)))
    return failure();
  for (mt::OutputOp output : model.getOps<mt::OutputOp>())
    builder.clone(*output, values);
  simplify(program);
  // The program has inputs for labels and weights only if an output depends on them.
  for (Operation &op : llvm::make_early_inc_range(program.getBody().front()))
    if (isa<mt::TargetOp, mt::SampleWeightOp>(op) && op.use_empty())
      op.erase();
  finish(program);
  return success();
}

struct Differentiate : impl::DifferentiateBase<Differentiate> {
  using DifferentiateBase::DifferentiateBase;

  void runOnOperation() override {
    SmallVector<mt::ModelOp> models(getOperation().getOps<mt::ModelOp>());
    if (models.size() != 1) {
      emitError(getOperation().getLoc()) << "expected one mt.model, found " << models.size();
      return signalPassFailure();
    }
    if (!models[0].findUpdate()) {
      models[0].emitOpError("expected a model with mt.update, found none: run mt-expand-optimizer first");
      return signalPassFailure();
    }
    if (failed(Programs(models[0]).build()))
      signalPassFailure();
  }
};
} // namespace
} // namespace mtc
