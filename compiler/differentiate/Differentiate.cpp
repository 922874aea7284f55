// SPDX-License-Identifier: Apache-2.0
#include "compiler/Passes.h"
#include "compiler/differentiate/Gradient.h"
#include "compiler/differentiate/Initializers.h"
#include "compiler/differentiate/Objective.h"
#include "compiler/differentiate/Simplify.h"
#include "dialects/mt/Expr.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "compiler/Passes.h.inc"

namespace {

// A variable of the plan that the optimizer owns.
struct Slot {
  std::string name;
  RankedTensorType type;
  mt::VariableKind kind;
  double initial;
};

// What one model becomes: declarations and four programs, in its place.
class Programs {
public:
  explicit Programs(mt::ModelOp model)
      : model(model), builder(model), optimizer(*model.getOps<mt::OptimizerOpInterface>().begin()) {
    prefix = optimizer.getOptimizerName().str() + "/";
    auto scalar = [&](Type element) { return RankedTensorType::get({}, element); };
    double rate = cast<FloatAttr>(*optimizer->getInherentAttr("learning_rate")).getValueAsDouble();
    owned.push_back({prefix + "iteration", scalar(builder.getI32Type()), mt::VariableKind::non_trainable, 0});
    owned.push_back({prefix + "learning_rate", scalar(builder.getF32Type()), mt::VariableKind::non_trainable, rate});
    for (mt::VariableOp variable : model.getOps<mt::VariableOp>())
      if (!variable.getFrozen())
        for (StringRef slot : optimizer.getSlotNames())
          owned.push_back(
              {slotName(variable, slot), cast<RankedTensorType>(variable.getType()), mt::VariableKind::slot, 0});
  }

  LogicalResult build() {
    if (failed(declare()))
      return failure();
    buildInit();
    if (failed(buildTrainStep()))
      return failure();
    buildEvalStep();
    buildPredict();
    model.erase();
    return success();
  }

private:
  std::string slotName(mt::VariableOp variable, StringRef slot) const {
    std::string name = variable.getName().str();
    std::replace(name.begin(), name.end(), '/', '_');
    return prefix + name + "_" + slot.str();
  }

  LogicalResult declare();
  void buildInit();
  LogicalResult buildTrainStep();
  void buildEvalStep();
  void buildPredict();

  // Starts a program and copies the model's computations into it.
  mt::ProgramOp begin(StringRef name);
  void copyForward();
  void finish(mt::ProgramOp program);
  // The total of the losses; reports each loss and metric.
  Value buildResults();
  void buildUpdate(MutableArrayRef<mt::VariableOp> variables, ArrayRef<Value> gradients);
  Value read(Location location, StringRef name, Type type) { return mt::ReadOp::create(builder, location, type, name); }
  void assign(Location location, StringRef name, Value value) {
    mt::AssignOp::create(builder, location, name, value, Value());
  }
  void report(Location location, StringRef name, Mean mean, bool loss) {
    mt::ResultOp::create(builder, location, name, mean.value, mean.weight, loss);
  }

  mt::ModelOp model;
  OpBuilder builder;
  mt::OptimizerOpInterface optimizer;
  std::string prefix;
  SmallVector<Slot> owned;
  IRMapping values; // of the model to those of the program under construction
};

LogicalResult Programs::declare() {
  llvm::StringSet<> names;
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>()) {
    names.insert(variable.getName());
    auto kind = variable.getFrozen() ? mt::VariableKind::non_trainable : mt::VariableKind::trainable;
    mt::DeclareOp::create(builder, variable.getLoc(), variable.getName(), kind, variable.getType());
  }
  for (const Slot &slot : owned) {
    if (!names.insert(slot.name).second)
      return model.emitOpError("expected no variable with the name of the optimizer's \"")
             << slot.name << "\", found one";
    mt::DeclareOp::create(builder, optimizer.getLoc(), slot.name, slot.kind, slot.type);
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

void Programs::copyForward() {
  for (Operation &op : model.getBody().front()) {
    if (auto variable = dyn_cast<mt::VariableOp>(op))
      values.map(variable.getResult(), read(op.getLoc(), variable.getName(), variable.getType()));
    else if (!isa<mt::LossOp, mt::MetricOp, mt::OutputOp, mt::OptimizerOpInterface>(op))
      builder.clone(op, values);
  }
}

void Programs::buildInit() {
  begin("init");
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>())
    assign(variable.getLoc(), variable.getName(), buildInitialValue(builder, variable));
  for (const Slot &slot : owned)
    assign(optimizer.getLoc(), slot.name, buildFilled(builder, optimizer.getLoc(), slot.type, slot.initial));
  // Not simplified: each variable has a value of its own, that can be computed in its place.
  builder.setInsertionPoint(model);
}

Value Programs::buildResults() {
  SmallVector<mt::LossOp> losses(model.getOps<mt::LossOp>());
  Mean total;
  for (mt::LossOp loss : losses) {
    Mean mean = buildLoss(builder, loss, values.lookup(loss.getValues()), values.lookupOrNull(loss.getWeights()));
    total.value =
        total.value ? mt::AddOp::create(builder, loss.getLoc(), total.value, mean.value).getResult() : mean.value;
    total.weight = mean.weight;
    // One loss is the total, whatever its name.
    if (losses.size() > 1)
      report(loss.getLoc(), loss.getName(), mean, /*loss=*/true);
  }
  report(losses[0].getLoc(), "loss", total, /*loss=*/true);
  for (mt::MetricOp metric : model.getOps<mt::MetricOp>())
    report(metric.getLoc(), metric.getName(),
           buildMetric(builder, metric, values.lookup(metric.getValues()), values.lookupOrNull(metric.getWeights())),
           false);
  return total.value;
}

LogicalResult Programs::buildTrainStep() {
  mt::ProgramOp program = begin("train_step");
  copyForward();
  Value loss = buildResults();
  SmallVector<mt::VariableOp> trainable;
  SmallVector<Value> reads;
  for (mt::VariableOp variable : model.getOps<mt::VariableOp>())
    if (!variable.getFrozen()) {
      trainable.push_back(variable);
      reads.push_back(values.lookup(variable.getResult()));
    }
  FailureOr<SmallVector<Value>> gradients = buildGradients(builder, loss, reads);
  if (failed(gradients))
    return failure();
  for (auto [variable, gradient] : llvm::zip(trainable, *gradients))
    if (!gradient)
      return variable.emitOpError("expected a differentiable path from \"")
             << variable.getName() << "\" to a loss, found none: make it `frozen`";
  buildUpdate(trainable, *gradients);
  finish(program);
  return success();
}

void Programs::buildUpdate(MutableArrayRef<mt::VariableOp> variables, ArrayRef<Value> gradients) {
  Location location = optimizer.getLoc();
  Value iteration = read(location, owned[0].name, owned[0].type), rate = read(location, owned[1].name, owned[1].type);
  SmallVector<Value> scalars = optimizer.buildScalars(builder, rate, iteration);
  for (auto [variable, gradient] : llvm::zip(variables, gradients)) {
    SmallVector<Value> slots;
    SmallVector<std::string> names = {variable.getName().str()};
    for (StringRef slot : optimizer.getSlotNames()) {
      names.push_back(slotName(variable, slot));
      slots.push_back(read(location, names.back(), variable.getType()));
    }
    SmallVector<Value> updated =
        optimizer.buildUpdate(builder, scalars, values.lookup(variable.getResult()), gradient, slots);
    for (auto [name, value] : llvm::zip_equal(names, updated))
      assign(location, name, value);
  }
  assign(location, owned[0].name, (mt::Expr(builder, location, iteration) + 1).value());
}

void Programs::buildEvalStep() {
  mt::ProgramOp program = begin("eval_step");
  copyForward();
  buildResults();
  finish(program);
}

void Programs::buildPredict() {
  mt::ProgramOp program = begin("predict");
  copyForward();
  for (mt::OutputOp output : model.getOps<mt::OutputOp>())
    builder.clone(*output, values);
  simplify(program);
  // Labels and weights are asked for only where an output needs them.
  for (Operation &op : llvm::make_early_inc_range(program.getBody().front()))
    if (isa<mt::TargetOp, mt::SampleWeightOp>(op) && op.use_empty())
      op.erase();
  finish(program);
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
