// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/Gradient.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/MtDialect.h"

using namespace mlir;
using namespace mlir::mt;

static bool isFloat(Value value) { return isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType()); }

void mlir::mt::addDependents(ArrayRef<Operation *> ops, DenseSet<Value> &active) {
  for (Operation *op : ops)
    if (!isa<StopGradientOp>(op) &&
        llvm::any_of(op->getOperands(), [&](Value operand) { return active.contains(operand); }))
      for (Value result : op->getResults())
        if (isFloat(result))
          active.insert(result);
}

// Marks the contractions that were built after `last`: the gradients of a contraction that stays f32 stay f32 too.
static void keepPrecision(Operation *op, Operation *last, Block *block) {
  StringAttr precision = precisionOf(op);
  if (!precision)
    return;
  for (Operation &made : llvm::make_range(last ? std::next(Block::iterator(last)) : block->begin(), block->end()))
    if (made.hasTrait<Contraction>())
      setPrecision(&made, precision);
}

LogicalResult mlir::mt::backpropagate(OpBuilder &builder, ArrayRef<Operation *> ops, const DenseSet<Value> &active,
                                      DenseMap<Value, Value> &gradients) {
  for (Operation *op : llvm::reverse(ops)) {
    SmallVector<Value> results;
    for (Value result : op->getResults())
      results.push_back(gradients.lookup(result));
    bool reached = llvm::any_of(results, [](Value gradient) { return bool(gradient); });
    bool needed = llvm::any_of(op->getOperands(), [&](Value operand) { return active.contains(operand); });
    if (!reached || !needed)
      continue;
    auto differentiable = dyn_cast<GradientOpInterface>(op);
    if (!differentiable)
      return op->emitOpError(
          "expected an op with a gradient between a trainable variable and a loss, found one without");
    SmallVector<Value> operandGradients;
    Block *block = builder.getInsertionBlock();
    Operation *last = block->empty() ? nullptr : &block->back();
    differentiable.buildGradient(builder, results, operandGradients);
    if (operandGradients.size() != op->getNumOperands())
      return op->emitOpError("expected a gradient of each of ")
             << op->getNumOperands() << " operands, found " << operandGradients.size();
    keepPrecision(op, last, block);
    for (auto [operand, gradient] : llvm::zip_equal(op->getOperands(), operandGradients)) {
      if (!gradient || !active.contains(operand))
        continue;
      Value &sum = gradients[operand];
      sum = sum ? AddOp::create(builder, op->getLoc(), sum, gradient).getResult() : gradient;
    }
  }
  return success();
}

void mlir::mt::buildDecomposedGradient(OpBuilder &builder, Operation *composite, ValueRange resultGradients,
                                       SmallVectorImpl<Value> &operandGradients) {
  if (!resultGradients[0])
    return operandGradients.append(composite->getNumOperands(), {});
  Block *block = builder.getInsertionBlock();
  Operation *last = &block->back();
  Value result = cast<DecomposeOpInterface>(composite).decompose(builder);
  SmallVector<Operation *> ops;
  for (Operation *op = last->getNextNode(); op; op = op->getNextNode())
    ops.push_back(op);
  DenseSet<Value> active;
  for (Value operand : composite->getOperands())
    if (isFloat(operand))
      active.insert(operand);
  addDependents(ops, active);
  DenseMap<Value, Value> gradients;
  gradients[result] = resultGradients[0];
  // backpropagate has emitted an error. The composite then has no gradients, and its caller fails.
  if (failed(backpropagate(builder, ops, active, gradients)))
    return;
  // An operand that occurs twice gets its gradient once.
  DenseSet<Value> seen;
  for (Value operand : composite->getOperands())
    operandGradients.push_back(active.contains(operand) && seen.insert(operand).second ? gradients.lookup(operand)
                                                                                       : Value());
}

Value mlir::mt::sumToShape(OpBuilder &builder, Location location, Value gradient, RankedTensorType type) {
  if (!gradient || !isa<FloatType>(type.getElementType()))
    return {};
  auto from = cast<RankedTensorType>(gradient.getType());
  int64_t lead = from.getRank() - type.getRank();
  if (lead < 0 || from == type)
    return from == type ? gradient : BroadcastOp::create(builder, location, type, gradient).getResult();
  // A gradient that is constant along an axis may have size 1 there: broadcast it before the sum.
  SmallVector<int64_t> full(from.getShape()), batch, inner;
  for (int64_t axis = 0; axis < from.getRank(); ++axis) {
    int64_t extent = axis < lead ? 1 : type.getDimSize(axis - lead);
    if (full[axis] == 1)
      full[axis] = extent;
    else if (axis < lead || extent == 1)
      (ShapedType::isDynamic(full[axis]) ? batch : inner).push_back(axis);
  }
  if (ArrayRef<int64_t>(full) != from.getShape())
    gradient = BroadcastOp::create(builder, location, from.clone(full), gradient);
  // First the sum over each sample, then one sum over the batch.
  if (!inner.empty())
    gradient = ReduceOp::create(builder, location, Reduction::sum, gradient, inner);
  if (!batch.empty())
    gradient = ReduceOp::create(builder, location, Reduction::sum, gradient, batch);
  if (gradient.getType() != type)
    gradient = ReshapeOp::create(builder, location, type, gradient);
  return gradient;
}

// ---- stop_gradient: it has no GradientOpInterface, so no gradient passes, and it decomposes to its operand

LogicalResult StopGradientOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                        SmallVectorImpl<Tensor> &results) {
  results.push_back(operands[0]);
  return success();
}
int64_t StopGradientOp::getFlops() { return 0; }
SmallVector<utils::IteratorType> StopGradientOp::getLoopIteratorTypes() { return elementwiseLoops(getOperation()); }
SmallVector<shard::ReductionKind> StopGradientOp::getReductionLoopIteratorKinds() { return {}; }
SmallVector<AffineMap> StopGradientOp::getIndexingMaps() { return elementwiseMaps(getOperation()); }
Value StopGradientOp::decompose(OpBuilder &) { return getOperand(); }
