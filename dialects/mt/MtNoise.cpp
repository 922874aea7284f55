// SPDX-License-Identifier: Apache-2.0
//
// Normal random numbers, and ops that draw random numbers during training.
#include "dialects/mt/Expr.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Numbers.h"
#include "dialects/mt/Random.h"
#include "dialects/mt/Types.h"

using namespace mlir;
using namespace mlir::mt;

static Expr uniform(OpBuilder &builder, Location location, Type type, StringRef stream, Value step) {
  return Expr(builder, location, RandomUniformOp::create(builder, location, type, stream, step));
}
static Expr normal(OpBuilder &builder, Location location, Type type, StringRef stream, Value step) {
  return Expr(builder, location, RandomNormalOp::create(builder, location, type, stream, step));
}

// Random number of element `i` of a tensor of this type.
static double uniformAt(const EvalContext &context, Type type, StringRef stream, ArrayRef<Tensor> step, int64_t i) {
  int64_t first = isSplit(type) ? context.firstRow * elementsPerRow(type) : 0;
  return uniformElement(context.seed, hashStream(stream), step.empty() ? 0 : static_cast<uint32_t>(step[0].data[0]),
                        first + i);
}
static double normalAt(const EvalContext &context, Type type, StringRef stream, ArrayRef<Tensor> step, int64_t i) {
  return M_SQRT2 * evaluateErfInv(2 * uniformAt(context, type, stream, step, i) - 1 + 0x1p-24);
}

// The argument of erf_inv is symmetric about 0, and never -1 or 1, where erf_inv is infinite.
Value RandomNormalOp::decompose(OpBuilder &builder) {
  Expr u = uniform(builder, getLoc(), getType(), getStream(), getStep());
  return (erfInv(u * 2.0 - (1 - 0x1p-24)) * 1.4142135623730951).value();
}
LogicalResult RandomNormalOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                        SmallVectorImpl<Tensor> &results) {
  Tensor result(concreteShape(tensorOf(getResult()), context.rows));
  for (int64_t i = 0; i < result.size(); ++i)
    result.data[i] = normalAt(context, getType(), getStream(), operands, i);
  results.push_back(std::move(result));
  return success();
}
int64_t RandomNormalOp::getFlops() { return 34 * elementsPerRow(getType()); }
SmallVector<utils::IteratorType> RandomNormalOp::getLoopIteratorTypes() { return elementwiseLoops(getOperation()); }
SmallVector<shard::ReductionKind> RandomNormalOp::getReductionLoopIteratorKinds() { return {}; }
SmallVector<AffineMap> RandomNormalOp::getIndexingMaps() { return elementwiseMaps(getOperation()); }

static LogicalResult verifyRate(Operation *op, const llvm::APFloat &rate) {
  if (!(number(rate) >= 0 && number(rate) < 1))
    return op->emitOpError("expected a rate from 0 to less than 1, found ") << number(rate);
  return success();
}

// ---- dropout

// Type of the random numbers: the operand's type, with size 1 along the axes whose elements share one number.
static RankedTensorType maskType(DropoutOp op) {
  RankedTensorType type = tensorOf(op.getOperand());
  SmallVector<int64_t> shape(type.getShape());
  for (int64_t dim : op.getShared())
    shape[dim] = 1;
  return type.clone(shape);
}

LogicalResult DropoutOp::verify() {
  RankedTensorType type = tensorOf(getOperand());
  for (int64_t dim : getShared())
    if (dim < isSplit(type) || dim >= type.getRank())
      return emitOpError("expected shared axes from ")
             << int(isSplit(type)) << " to " << type.getRank() - 1 << ", found " << dim;
  return verifyRate(*this, getRate());
}
Value DropoutOp::decompose(OpBuilder &builder) {
  if (!getStep())
    return getOperand();
  Expr x(builder, getLoc(), getOperand());
  Expr kept = uniform(builder, getLoc(), maskType(*this), getStream(), getStep()) >= number(getRate());
  return select(kept, x * (1 / (1 - number(getRate()))), 0.0).value();
}
LogicalResult DropoutOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                   SmallVectorImpl<Tensor> &results) {
  Tensor result = operands[0];
  if (operands.size() > 1) {
    SmallVector<int64_t> mask = concreteShape(maskType(*this), context.rows);
    int64_t i = 0;
    for (Index index(result.shape); !index.done(); index.next()) {
      double u = uniformAt(context, maskType(*this), getStream(), operands.drop_front(), index.offsetIn(mask));
      result.data[i++] *= u >= number(getRate()) ? 1 / (1 - number(getRate())) : 0;
    }
  }
  results.push_back(std::move(result));
  return success();
}

// ---- noise

// Applies `function` to each element and its normal random number, if the op has a step.
static LogicalResult interpretNoise(Operation *op, StringRef stream, const EvalContext &context,
                                    ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results,
                                    llvm::function_ref<double(double, double)> function) {
  Tensor result = operands[0];
  if (operands.size() > 1)
    for (int64_t i = 0; i < result.size(); ++i)
      result.data[i] =
          function(result.data[i], normalAt(context, op->getResult(0).getType(), stream, operands.drop_front(), i));
  results.push_back(std::move(result));
  return success();
}

LogicalResult GaussianNoiseOp::verify() {
  if (!(number(getStddev()) >= 0 && getStddev().isFinite()))
    return emitOpError("expected a finite stddev of 0 or more, found ") << number(getStddev());
  return success();
}
Value GaussianNoiseOp::decompose(OpBuilder &builder) {
  if (!getStep())
    return getOperand();
  Expr x(builder, getLoc(), getOperand());
  return (x + normal(builder, getLoc(), getType(), getStream(), getStep()) * number(getStddev())).value();
}
LogicalResult GaussianNoiseOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                         SmallVectorImpl<Tensor> &results) {
  return interpretNoise(*this, getStream(), context, operands, results,
                        [&](double x, double z) { return x + number(getStddev()) * z; });
}

static double spread(const llvm::APFloat &rate) { return std::sqrt(number(rate) / (1 - number(rate))); }
LogicalResult GaussianDropoutOp::verify() { return verifyRate(*this, getRate()); }
Value GaussianDropoutOp::decompose(OpBuilder &builder) {
  if (!getStep())
    return getOperand();
  Expr x(builder, getLoc(), getOperand());
  return (x * (normal(builder, getLoc(), getType(), getStream(), getStep()) * spread(getRate()) + 1.0)).value();
}
LogicalResult GaussianDropoutOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                           SmallVectorImpl<Tensor> &results) {
  return interpretNoise(*this, getStream(), context, operands, results,
                        [&](double x, double z) { return x * (1 + spread(getRate()) * z); });
}

// ---- while training

void WhileTrainingOp::beginTraining(OpBuilder &, Value, SmallVectorImpl<std::pair<unsigned, Value>> &) {
  setTraining(true);
}
Value WhileTrainingOp::decompose(OpBuilder &) { return getTraining() ? getOperand() : getOtherwise(); }
LogicalResult WhileTrainingOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                         SmallVectorImpl<Tensor> &results) {
  results.push_back(operands[getTraining() ? 0 : 1]);
  return success();
}
int64_t WhileTrainingOp::getFlops() { return 0; }
SmallVector<utils::IteratorType> WhileTrainingOp::getLoopIteratorTypes() { return elementwiseLoops(getOperation()); }
SmallVector<shard::ReductionKind> WhileTrainingOp::getReductionLoopIteratorKinds() { return {}; }
SmallVector<AffineMap> WhileTrainingOp::getIndexingMaps() { return elementwiseMaps(getOperation()); }
