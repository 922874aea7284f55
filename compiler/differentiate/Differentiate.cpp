// SPDX-License-Identifier: Apache-2.0
#include "compiler/Passes.h"
#include "compiler/differentiate/Declarations.h"
#include "compiler/differentiate/Derivatives.h"
#include "compiler/differentiate/Gradient.h"
#include "compiler/differentiate/Initializers.h"
#include "compiler/differentiate/Limits.h"
#include "compiler/differentiate/LossScale.h"
#include "compiler/differentiate/Objective.h"
#include "compiler/differentiate/Simplify.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Expr.h"
#include "dialects/mt/Reads.h"
#include "dialects/mt/Update.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using mlir::mt::Expr;

namespace mtc {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "compiler/Passes.h.inc"

namespace {

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
        scale(model, folderOf(iteration)), derivatives(model) {}

  LogicalResult build() {
    setLimits(model);
    if (failed(checkPrecision()) || failed(declareVariables(builder, model, scale)))
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
  LogicalResult checkPrecision();
  void buildInit();
  LogicalResult buildTrainStep();
  LogicalResult buildEvalStep();
  LogicalResult buildPredict();

  // Builds the gradients that mt.update names.
  LogicalResult buildGradientsOf(Value loss, llvm::StringMap<Value> &gradients);
  LogicalResult buildUpdate(llvm::StringMap<Value> &gradients);
  LogicalResult buildInUpdate(Operation &op, llvm::StringMap<Value> &gradients);
  LogicalResult copyToUpdate(Operation &op);

  // Starts a program and copies the model's computations into it.
  mt::ProgramOp begin(StringRef name);
  LogicalResult copyForward(bool training);
  void mapReads(Operation *op);
  // Changes an op of train_step to its training form, and assigns the variables that the op updates.
  LogicalResult beginTraining(Operation &original, mt::TrainingOpInterface op);
  void dropUnused(mt::ProgramOp program, bool labels);
  void finish(mt::ProgramOp program);
  // Returns the total loss; null if the model has no loss. Reports each loss if `reports`.
  Value buildObjective(bool reports);
  void reportMetrics();
  Value read(mt::VariableOp variable) {
    return mt::ReadOp::create(builder, variable.getLoc(), variable.getType(), variable.getName());
  }
  void report(Location location, StringRef name, Mean mean, bool loss, mt::Finalizer finalizer = mt::Finalizer::mean,
              mt::Better better = mt::Better::lower, ArrayRef<double> parameters = {}) {
    mt::ResultOp::create(builder, location, name, mean.value, mean.weight, loss, finalizer, better, parameters);
  }

  mt::ModelOp model;
  mt::UpdateOp update;
  mt::VariableOp iteration;
  OpBuilder builder;
  LossScale scale;
  Derivatives derivatives;
  Value apply;                                  // whether the step is applied, tensor<i1>; null: always
  llvm::DenseMap<mt::VariableOp, Value> before; // values of variables before the step
  IRMapping values;                             // from values of the model to values of the program under construction
  llvm::SmallSetVector<mt::VariableOp, 8> changed; // variables that the forward pass of train_step updates
};

// A step that computes its own losses does not scale them, and 16-bit gradients of f16 need that.
LogicalResult Programs::checkPrecision() {
  if (!mt::isWholeStep(model) || mt::Compilation(model).getPrecision() != "f16")
    return success();
  return update.emitOpError("expected a precision of f32, tf32 or bf16 for a step that computes its own losses, which "
                            "are not scaled, found f16");
}

// Products of variables, gradients and slots are computed in f32 in plans of every precision.
static void keepFloat32(Operation *op) {
  op->walk([](Operation *inner) {
    if (inner->hasTrait<mt::Contraction>() && llvm::none_of(inner->getOperandTypes(), mt::isSplit))
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
    } else if (auto derivative = dyn_cast<mt::DerivativeOp>(op)) {
      if (failed(derivatives.build(builder, derivative, values)))
        return failure();
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
  assignFirstValues(builder, model, scale);
  // The program is not simplified: each variable keeps a value of its own, which can be computed in the variable's
  // buffer.
  builder.setInsertionPoint(model);
}

Value Programs::buildObjective(bool reports) {
  SmallVector<mt::LossOp> losses(model.getOps<mt::LossOp>());
  if (losses.empty())
    return {};
  Mean total;
  for (mt::LossOp loss : losses) {
    Mean mean = buildLoss(builder, loss, values.lookup(loss.getValues()), values.lookupOrNull(loss.getWeights()));
    Value part = scaleLoss(builder, loss, mean.value);
    total.value = total.value ? mt::AddOp::create(builder, loss.getLoc(), total.value, part).getResult() : part;
    total.weight = mean.weight;
    // A single loss is reported as the total, whatever its name. Several losses are reported without their scales.
    if (reports && losses.size() > 1)
      report(loss.getLoc(), loss.getName(), mean, /*loss=*/true);
  }
  for (mt::RegularizerOp regularizer : model.getOps<mt::RegularizerOp>())
    if (Value added = buildRegularizer(builder, regularizer, values.lookup(regularizer.getValue())))
      total.value = mt::AddOp::create(builder, regularizer.getLoc(), total.value, added);
  if (reports)
    report(losses[0].getLoc(), "loss", total, /*loss=*/true);
  return total.value;
}

void Programs::reportMetrics() {
  for (mt::MetricOp metric : model.getOps<mt::MetricOp>())
    report(metric.getLoc(), metric.getName(),
           buildMetric(builder, metric, values.lookup(metric.getValues()), values.lookupOrNull(metric.getWeights())),
           false, metric.getFinalizer(), *metric.findBetter(), metric.getParameters());
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
  if (variables.empty())
    return success();
  FailureOr<SmallVector<Value>> built = buildGradients(builder, loss, scale.read(builder, update.getLoc()), reads);
  if (failed(built))
    return failure();
  for (auto [variable, gradient] : llvm::zip(variables, *built)) {
    if (gradient)
      continue;
    // A derivative in the model may be one that does not depend on the variable, as a slope on a bias.
    bool mayBeZeros = !model.getBody().front().getOps<mt::DerivativeOp>().empty();
    if (named.lookup(variable.getName()) && !mayBeZeros)
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
  for (Operation &op : update.getBody().front())
    if (mapReads(&op); failed(buildInUpdate(op, gradients)))
      return failure();
  Derivatives::removeArguments(*builder.getInsertionBlock());
  Expr steps(builder, update.getLoc(), read(iteration));
  mt::AssignOp::create(builder, update.getLoc(), iteration.getName(), (steps + 1).value(), apply);
  return success();
}

LogicalResult Programs::buildInUpdate(Operation &op, llvm::StringMap<Value> &gradients) {
  if (auto derivative = dyn_cast<mt::DerivativeOp>(op))
    return derivatives.build(builder, derivative, values);
  if (auto gradient = dyn_cast<mt::GradientOp>(op)) {
    values.map(gradient.getResult(), gradients.lookup(gradient.getName()));
    return success();
  }
  if (auto step = dyn_cast<mt::IterationOp>(op)) {
    values.map(step.getResult(), read(iteration));
    return success();
  }
  auto assign = dyn_cast<mt::AssignOp>(op);
  if (!assign)
    return copyToUpdate(op);
  if (llvm::any_of(changed, [&](mt::VariableOp variable) { return variable.getName() == assign.getName(); }))
    return op.emitOpError("expected a variable that the forward pass does not change, found \"")
           << assign.getName() << '"';
  mt::AssignOp::create(builder, op.getLoc(), assign.getName(), values.lookup(assign.getValue()), apply);
  return success();
}

// The result that is the loss if none is marked as one: the result named "loss", or else the first.
static mt::ResultOp mainResult(mt::UpdateOp update) {
  auto results = llvm::to_vector(update.getBody().front().getOps<mt::ResultOp>());
  if (llvm::any_of(results, [](mt::ResultOp result) { return result.getLoss(); }))
    return {};
  auto *named = llvm::find_if(results, [](mt::ResultOp result) { return result.getName() == "loss"; });
  return named == results.end() ? results.front() : *named;
}

LogicalResult Programs::copyToUpdate(Operation &op) {
  Operation *copy = builder.clone(op, values);
  keepFloat32(copy);
  if (auto result = dyn_cast<mt::ResultOp>(copy); result && mainResult(update) == &op)
    result.setLoss(true);
  auto layer = dyn_cast<mt::TrainingOpInterface>(copy);
  if (!layer)
    return success();
  SmallVector<std::pair<unsigned, Value>> updates;
  OpBuilder atLayer(copy);
  layer.beginTraining(
      builder, mt::ReadOp::create(atLayer, iteration.getLoc(), iteration.getType(), iteration.getName()), updates);
  if (updates.empty())
    return success();
  return op.emitOpError("expected an op that changes no variable inside mt.update, where mt.assign does, found this");
}

LogicalResult Programs::buildTrainStep() {
  mt::ProgramOp program = begin("train_step");
  if (failed(copyForward(/*training=*/true)))
    return failure();
  bool reports = !model.reportsInUpdate();
  Value loss = buildObjective(reports);
  if (reports)
    reportMetrics();
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

// Erases targets and weights on which nothing depends, if `labels`. A whole step may train with more inputs than its
// other programs read, so they lose the inputs on which nothing depends, unless that is all of them.
void Programs::dropUnused(mt::ProgramOp program, bool labels) {
  Derivatives::removeArguments(program.getBody().front());
  simplify(program);
  Block &body = program.getBody().front();
  bool inputs = mt::isWholeStep(model) &&
                llvm::any_of(body.getOps<mt::InputOp>(), [](mt::InputOp input) { return !input.use_empty(); });
  for (Operation &op : llvm::make_early_inc_range(body))
    if (op.use_empty() && ((labels && isa<mt::TargetOp, mt::SampleWeightOp>(op)) || (inputs && isa<mt::InputOp>(op))))
      op.erase();
}

LogicalResult Programs::buildEvalStep() {
  if (model.getOps<mt::LossOp>().empty() && model.getOps<mt::MetricOp>().empty())
    return success(); // there is nothing to report
  mt::ProgramOp program = begin("eval_step");
  if (failed(copyForward(/*training=*/false)))
    return failure();
  buildObjective(/*reports=*/true);
  reportMetrics();
  dropUnused(program, /*labels=*/mt::isWholeStep(model));
  finish(program);
  return success();
}

LogicalResult Programs::buildPredict() {
  mt::ProgramOp program = begin("predict");
  if (failed(copyForward(/*training=*/false)))
    return failure();
  for (mt::OutputOp output : model.getOps<mt::OutputOp>())
    builder.clone(*output, values);
  dropUnused(program, /*labels=*/true);
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
