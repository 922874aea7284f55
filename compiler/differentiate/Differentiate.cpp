// SPDX-License-Identifier: Apache-2.0
#include "compiler/Passes.h"
#include "compiler/differentiate/Gradient.h"
#include "compiler/differentiate/Initializers.h"
#include "compiler/differentiate/Limits.h"
#include "compiler/differentiate/Objective.h"
#include "compiler/differentiate/Simplify.h"
#include "compiler/differentiate/Update.h"
#include "dialects/mt/Expr.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "compiler/Passes.h.inc"

namespace {

// Builds the declarations and the four programs that replace one model.
class Programs {
public:
  explicit Programs(mt::ModelOp model) : model(model), builder(model), optimizer(model) {}

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

  // Starts a program and copies the model's computations into it.
  mt::ProgramOp begin(StringRef name);
  LogicalResult copyForward(bool training);
  // Changes an op of train_step to its training form, and assigns the variables that the op updates.
  LogicalResult beginTraining(Operation &original, mt::TrainingOpInterface op);
  void finish(mt::ProgramOp program);
  // Reports each loss and metric; returns the total loss.
  Value buildResults();
  Value read(Location location, StringRef name, Type type) { return mt::ReadOp::create(builder, location, type, name); }
  void assign(Location location, StringRef name, Value value) {
    mt::AssignOp::create(builder, location, name, value, Value());
  }
  void report(Location location, StringRef name, Mean mean, bool loss, mt::Finalizer finalizer = mt::Finalizer::mean,
              mt::Better better = mt::Better::lower) {
    mt::ResultOp::create(builder, location, name, mean.value, mean.weight, loss, finalizer, better);
  }

  mt::ModelOp model;
  OpBuilder builder;
  Optimizer optimizer;
  IRMapping values; // from values of the model to values of the program under construction
  llvm::SmallSetVector<mt::VariableOp, 8> changed; // variables that the forward pass of train_step updates
};

LogicalResult Programs::declare() {
  llvm::StringSet<> names;
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>()) {
    names.insert(variable.getName());
    auto kind = variable.getFrozen() ? mt::VariableKind::non_trainable : mt::VariableKind::trainable;
    mt::DeclareOp::create(builder, variable.getLoc(), variable.getName(), kind, variable.getType(),
                          mt::VariableRoleAttr(), StringAttr());
  }
  for (const OptimizerVariable &slot : optimizer.variables()) {
    if (!names.insert(slot.name).second)
      return model.emitOpError("expected no variable with the name of the optimizer's \"")
             << slot.name << "\", found one";
    auto declared = mt::DeclareOp::create(builder, optimizer.getLoc(), slot.name, slot.kind, slot.type,
                                          mt::VariableRoleAttr(), StringAttr());
    declared.setRole(slot.role);
    if (!slot.of.empty())
      declared.setOf(slot.of);
  }
  return success();
}

mt::ProgramOp Programs::begin(StringRef name) {
  auto program = mt::ProgramOp::create(builder, model.getLoc(), name);
  builder.setInsertionPointToStart(&program.getBody().emplaceBlock());
  values.clear();
  return program;
}

void Programs::finish(mt::ProgramOp program) {
  simplify(program);
  builder.setInsertionPoint(model);
}

LogicalResult Programs::copyForward(bool training) {
  for (Operation &op : model.getBody().front()) {
    if (auto variable = dyn_cast<mt::VariableOp>(op)) {
      values.map(variable.getResult(), read(op.getLoc(), variable.getName(), variable.getType()));
    } else if (auto iteration = dyn_cast<mt::IterationOp>(op)) {
      values.map(iteration.getResult(), optimizer.readIteration(builder));
    } else if (!isa<mt::LossOp, mt::RegularizerOp, mt::MetricOp, mt::OutputOp, mt::OptimizerOpInterface>(op)) {
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
  OpBuilder before(op);
  op.beginTraining(builder, optimizer.readIteration(before), updates);
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
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>())
    assign(variable.getLoc(), variable.getName(), buildInitialValue(builder, variable));
  for (const OptimizerVariable &slot : optimizer.variables())
    assign(optimizer.getLoc(), slot.name, buildFilled(builder, optimizer.getLoc(), slot.type, slot.start));
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

LogicalResult Programs::buildTrainStep() {
  mt::ProgramOp program = begin("train_step");
  if (failed(copyForward(/*training=*/true)))
    return failure();
  Value loss = buildResults();
  SmallVector<mt::VariableOp> trainable;
  SmallVector<Value> reads;
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>())
    if (!variable.getFrozen()) {
      trainable.push_back(variable);
      reads.push_back(values.lookup(variable.getResult()));
    }
  FailureOr<SmallVector<Value>> gradients = buildGradients(builder, loss, optimizer.readLossScale(builder), reads);
  if (failed(gradients))
    return failure();
  for (auto [variable, gradient] : llvm::zip(trainable, *gradients))
    if (!gradient)
      return variable.emitOpError("expected a differentiable path from \"")
             << variable.getName() << "\" to a loss, found none: make it `frozen`";
  optimizer.unscale(builder, *gradients);
  optimizer.buildStep(builder, trainable, reads, *gradients, values.lookupOrNull(optimizer.getSchedule()));
  for (mt::VariableOp variable : changed)
    optimizer.assign(builder, variable.getLoc(), variable.getName(), values.lookup(variable.getResult()));
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
    if (failed(Programs(models[0]).build()))
      signalPassFailure();
  }
};
} // namespace
} // namespace mtc
