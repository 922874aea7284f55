// SPDX-License-Identifier: Apache-2.0
#include "compiler/interpret/Interpreter.h"

using namespace mlir;
using mt::EvalContext;
using mt::Tensor;

namespace mtc {
namespace {

class Interpreter {
public:
  Interpreter(const Step &step, Tensors &variables) : step(step), before(variables), variables(variables) {
    int64_t batch = std::max(step.batch, step.samples), rows = (batch + step.shards - 1) / step.shards;
    for (int64_t shard = 0; shard < step.shards; ++shard) {
      int64_t first = std::min(shard * rows, step.samples);
      contexts.push_back({std::min(rows, step.samples - first), first, step.samples, step.seed});
    }
  }

  LogicalResult run(mt::ProgramOp program) {
    for (Operation &op : program.getBody().front())
      if (failed(runOp(op)))
        return failure();
    return success();
  }

  StepResults results;

private:
  // A value, with one tensor per shard.
  using Values = SmallVector<Tensor>;

  LogicalResult runOp(Operation &op);
  LogicalResult compute(Operation &op);
  LogicalResult runKernel(mt::KernelOp kernel);
  LogicalResult readInput(Operation *op, StringRef name, bool optional);
  LogicalResult readVariable(mt::ReadOp op);
  LogicalResult report(mt::ResultOp op);
  void allReduce(Operation &op);
  // The value of a replicated tensor; fails if shards disagree.
  FailureOr<Tensor> agreed(Operation *op, Value value);
  // The rows of all shards, in order.
  Tensor joined(Value value);

  const Step &step;
  const Tensors before; // a step reads variables as they were before it
  Tensors &variables;
  SmallVector<EvalContext> contexts;
  DenseMap<Value, Values> values;
};

LogicalResult Interpreter::runOp(Operation &op) {
  if (auto input = dyn_cast<mt::InputOp>(op))
    return readInput(input, input.getName(), false);
  if (auto target = dyn_cast<mt::TargetOp>(op))
    return readInput(target, target.getName(), false);
  if (auto weight = dyn_cast<mt::SampleWeightOp>(op))
    return readInput(weight, weight.getName(), true);
  if (auto read = dyn_cast<mt::ReadOp>(op))
    return readVariable(read);
  if (auto result = dyn_cast<mt::ResultOp>(op))
    return report(result);
  if (auto rate = dyn_cast<mt::RateOp>(op))
    return success(succeeded(agreed(rate, rate.getValue())));
  if (auto kernel = dyn_cast<mt::KernelOp>(op))
    return runKernel(kernel);
  if (auto output = dyn_cast<mt::OutputOp>(op)) {
    results.outputs[output.getName().str()] = joined(output.getValue());
    return success();
  }
  if (auto assign = dyn_cast<mt::AssignOp>(op)) {
    FailureOr<Tensor> value = agreed(assign, assign.getValue());
    FailureOr<Tensor> apply =
        assign.getApply() ? agreed(assign, assign.getApply()) : FailureOr<Tensor>(Tensor::scalar(1));
    if (failed(value) || failed(apply))
      return failure();
    if (apply->data[0] != 0)
      variables[assign.getName().str()] = *value;
    return success();
  }
  if (isa<shard::AllReduceOp>(op)) {
    allReduce(op);
    return success();
  }
  if (isa<mt::CompleteGradientOp>(op)) // a statement
    return success();
  // Annotations of the sharding do not change values.
  if (isa<shard::ShardOp>(op))
    values[op.getResult(0)] = values.lookup(op.getOperand(0));
  if (isa<shard::ShardOp, shard::ShardingOp>(op))
    return success();
  return compute(op);
}

LogicalResult Interpreter::compute(Operation &op) {
  auto meaning = dyn_cast<mt::InterpretOpInterface>(op);
  if (!meaning)
    return op.emitOpError("expected an op with a meaning, found one without");
  for (const EvalContext &context : contexts) {
    SmallVector<Tensor> operands, computed;
    for (Value operand : op.getOperands())
      operands.push_back(values[operand][&context - contexts.begin()]);
    if (failed(meaning.interpret(context, operands, computed)))
      return op.emitOpError("expected a value, found that its interpretation failed");
    for (auto [result, tensor] : llvm::zip_equal(op.getResults(), computed)) {
      auto type = cast<RankedTensorType>(result.getType());
      if (type.getElementType().isF32() && (step.round || type.getRank() == 0))
        for (double &element : tensor.data)
          element = step.round ? step.round(element) : static_cast<float>(element);
      values[result].push_back(std::move(tensor));
    }
  }
  return success();
}

LogicalResult Interpreter::runKernel(mt::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), kernel.getOperands()))
    values[argument] = values.lookup(operand);
  for (Operation &op : body.without_terminator())
    if (failed(runOp(op)))
      return failure();
  for (auto [result, yielded] : llvm::zip_equal(kernel.getResults(), body.getTerminator()->getOperands()))
    values[result] = values.lookup(yielded);
  return success();
}

LogicalResult Interpreter::readInput(Operation *op, StringRef name, bool optional) {
  Value value = op->getResult(0);
  int64_t row = mt::elementsPerRow(value.getType());
  auto found = step.inputs.find(name.str());
  if (found == step.inputs.end() && !optional)
    return op->emitOpError("expected a value for \"") << name << "\", found none";
  Tensor ones(ArrayRef<int64_t>{step.samples}, 1.0);
  const Tensor &whole = found == step.inputs.end() ? ones : found->second;
  if (whole.size() != step.samples * row)
    return op->emitOpError("expected ") << step.samples * row << " elements for \"" << name << "\", found "
                                        << whole.size();
  for (const EvalContext &context : contexts) {
    Tensor part(mt::concreteShape(cast<RankedTensorType>(value.getType()), context.rows));
    std::copy_n(whole.data.begin() + context.firstRow * row, part.size(), part.data.begin());
    values[value].push_back(std::move(part));
  }
  return success();
}

LogicalResult Interpreter::readVariable(mt::ReadOp op) {
  auto found = before.find(op.getName().str());
  if (found == before.end())
    return op.emitOpError("expected a variable \"") << op.getName() << "\", found none";
  if (found->second.size() != mt::elementsPerRow(op.getType()))
    return op.emitOpError("expected ") << mt::elementsPerRow(op.getType()) << " elements of \"" << op.getName()
                                       << "\", found " << found->second.size();
  Tensor value = found->second;
  value.shape.assign(cast<RankedTensorType>(op.getType()).getShape());
  values[op.getResult()] = Values(contexts.size(), value);
  return success();
}

LogicalResult Interpreter::report(mt::ResultOp op) {
  FailureOr<Tensor> value = agreed(op, op.getValue()), weight = agreed(op, op.getWeight());
  if (failed(value) || failed(weight))
    return failure();
  results.metrics[op.getName().str()] = {*value, weight->data[0]};
  return success();
}

void Interpreter::allReduce(Operation &op) {
  Values nodes = values.lookup(op.getOperand(0));
  bool scalar = nodes[0].rank() == 0;
  for (size_t width = nodes.size(); width > 1; width /= 2)
    for (size_t node = 0; node < width / 2; ++node) {
      Tensor sum = nodes[2 * node];
      for (int64_t i = 0; i < sum.size(); ++i) {
        sum.data[i] += nodes[2 * node + 1].data[i];
        if (scalar)
          sum.data[i] = static_cast<float>(sum.data[i]);
      }
      nodes[node] = std::move(sum);
    }
  values[op.getResult(0)] = Values(contexts.size(), nodes[0]);
}

FailureOr<Tensor> Interpreter::agreed(Operation *op, Value value) {
  const Values &all = values[value];
  auto same = [](double a, double b) { return a == b || (a != a && b != b); };
  for (const Tensor &other : all)
    if (!std::equal(other.data.begin(), other.data.end(), all[0].data.begin(), all[0].data.end(), same))
      return op->emitOpError("expected one value on all shards, found another on shard ") << &other - all.begin();
  return all[0];
}

Tensor Interpreter::joined(Value value) {
  Tensor whole(mt::concreteShape(cast<RankedTensorType>(value.getType()), step.samples));
  auto at = whole.data.begin();
  for (const Tensor &part : values[value])
    at = std::copy(part.data.begin(), part.data.end(), at);
  return whole;
}

} // namespace

FailureOr<StepResults> interpretProgram(ModuleOp module, StringRef name, const Step &step, Tensors &variables) {
  auto program = module.lookupSymbol<mt::ProgramOp>(name);
  if (!program)
    return module.emitError() << "expected a program @" << name << ", found none";
  Interpreter interpreter(step, variables);
  if (failed(interpreter.run(program)))
    return failure();
  return std::move(interpreter.results);
}

} // namespace mtc
