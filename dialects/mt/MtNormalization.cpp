// SPDX-License-Identifier: Apache-2.0
//
// Normalisation, and the layers that only act while training.
#include "dialects/mt/Expr.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Numbers.h"

using namespace mlir;
using namespace mlir::mt;

static RankedTensorType tensorOf(Value value) { return cast<RankedTensorType>(value.getType()); }
static double number(const llvm::APFloat &x) { return x.convertToFloat(); }

static LogicalResult verifyEpsilon(Operation *op, const llvm::APFloat &epsilon) {
  if (!(number(epsilon) >= 0 && epsilon.isFinite()))
    return op->emitOpError("expected a finite epsilon of 0 or more, found ") << number(epsilon);
  return success();
}

// ---- batch normalisation

LogicalResult BatchNormalizationOp::verify() {
  RankedTensorType type = tensorOf(getOperand());
  if (type.getRank() < 2 || !isSplit(type))
    return emitOpError("expected a batch axis first and channels last, found ") << type;
  RankedTensorType channels = type.clone({type.getShape().back()});
  for (Value parameter : {getGamma(), getBeta(), getMean(), getVariance()})
    if (parameter.getType() != channels)
      return emitOpError("expected parameters of type ") << channels << ", found " << parameter.getType();
  if (!(number(getMomentum()) >= 0 && number(getMomentum()) <= 1))
    return emitOpError("expected a momentum from 0 to 1, found ") << number(getMomentum());
  return verifyEpsilon(*this, getEpsilon());
}

// Values of one channel in the global batch.
static Expr channelSize(const Expr &x) {
  Expr n = x.make(
      BatchSizeOp::create(x.getBuilder(), x.getLocation(), RankedTensorType::get({}, x.getBuilder().getF32Type())));
  int64_t inner = elementsPerRow(x.type()) / x.type().getShape().back();
  return inner == 1 ? n : n * static_cast<double>(inner);
}
// [C]: each sample's own sum first, then one over the batch.
static Expr channelSum(Expr x) {
  auto sum = [](const Expr &a, ArrayRef<int64_t> dims) {
    return a.make(ReduceOp::create(a.getBuilder(), a.getLocation(), Reduction::sum, a.value(), dims));
  };
  if (x.type().getRank() > 2)
    x = sum(x, llvm::to_vector(llvm::seq<int64_t>(1, x.type().getRank() - 1)));
  return sum(x, {0});
}
static Expr channelMean(const Expr &x) { return channelSum(x) / channelSize(x); }

namespace {
// What a batch is normalised with. Two passes: nothing cancels.
struct Statistics {
  Expr mean, centred, variance;
  explicit Statistics(const Expr &x)
      : mean(channelMean(x)), centred(x - mean), variance(channelMean(square(centred))) {}
};
} // namespace

static bool isSplat(Value value, double number) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : nullptr;
  return elements && elements.isSplat() && elements.getSplatValue<llvm::APFloat>().isExactlyValue(number);
}

Value BatchNormalizationOp::decompose(OpBuilder &builder) {
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  Expr x = e(getOperand()), mean = e(getMean()), variance = e(getVariance()), centred = x;
  if (getTraining()) {
    Statistics batch(x);
    centred = batch.centred, variance = batch.variance;
  } else {
    centred = x - mean;
  }
  Expr factor = rsqrt(variance + number(getEpsilon()));
  if (!isSplat(getGamma(), 1))
    factor = e(getGamma()) * factor;
  Expr y = centred * factor;
  return (isSplat(getBeta(), 0) ? y : y + e(getBeta())).value();
}

// With x' = (x - mean) / deviation: dbeta = sum dy, dgamma = sum dy x', dx = gamma / deviation (dy - (dbeta + x'
// dgamma) / size): what leaves through mean and variance is in it, so that these need no gradient of their own.
void BatchNormalizationOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                         SmallVectorImpl<Value> &operandGradients) {
  if (!getTraining() || !resultGradients[0])
    return buildDecomposedGradient(builder, *this, resultGradients, operandGradients);
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  Expr x = e(getOperand()), gamma = e(getGamma());
  Expr dy = broadcastTo(e(resultGradients[0]), x.type());
  Statistics batch(x);
  Expr factor = rsqrt(batch.variance + number(getEpsilon())), size = channelSize(x);
  Expr dbeta = channelSum(dy), dgamma = channelSum(dy * batch.centred) * factor;
  Expr dx = (dy - dbeta / size - batch.centred * (factor * dgamma / size)) * (gamma * factor);
  operandGradients.append({dx.value(), dgamma.value(), dbeta.value(), Value(), Value()});
}

void BatchNormalizationOp::beginTraining(OpBuilder &builder, Value,
                                         SmallVectorImpl<std::pair<unsigned, Value>> &updates) {
  if (getFrozen())
    return;
  setTraining(true);
  Statistics batch(Expr(builder, getLoc(), getOperand()));
  auto moved = [&](Value old, const Expr &found) {
    return (Expr(builder, getLoc(), old) * number(getMomentum()) + found * oneMinus(getMomentum())).value();
  };
  updates.push_back({3, moved(getMean(), batch.mean)});
  updates.push_back({4, moved(getVariance(), batch.variance)});
}

LogicalResult BatchNormalizationOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                              SmallVectorImpl<Tensor> &results) {
  const Tensor &x = operands[0];
  int64_t channels = x.shape.back(), size = x.size() / std::max<int64_t>(channels, 1);
  Tensor result = x;
  for (int64_t c = 0; c < channels; ++c) {
    double mean = operands[3].data[c], variance = operands[4].data[c];
    if (getTraining()) {
      mean = variance = 0;
      for (int64_t i = 0; i < size; ++i)
        mean += x.data[i * channels + c] / size;
      for (int64_t i = 0; i < size; ++i)
        variance += (x.data[i * channels + c] - mean) * (x.data[i * channels + c] - mean) / size;
    }
    for (int64_t i = 0; i < size; ++i)
      result.data[i * channels + c] =
          (x.data[i * channels + c] - mean) / std::sqrt(variance + number(getEpsilon())) * operands[1].data[c] +
          operands[2].data[c];
  }
  results.push_back(std::move(result));
  return success();
}
int64_t BatchNormalizationOp::getFlops() { return (getTraining() ? 8 : 3) * elementsPerRow(getType()); }
SmallVector<utils::IteratorType> BatchNormalizationOp::getLoopIteratorTypes() {
  auto kind = getTraining() ? utils::IteratorType::reduction : utils::IteratorType::parallel;
  SmallVector<utils::IteratorType> loops(tensorOf(getOperand()).getRank(), kind);
  loops.back() = utils::IteratorType::parallel;
  return loops;
}
SmallVector<shard::ReductionKind> BatchNormalizationOp::getReductionLoopIteratorKinds() {
  int64_t reductions = llvm::count(getLoopIteratorTypes(), utils::IteratorType::reduction);
  return SmallVector<shard::ReductionKind>(reductions, shard::ReductionKind::Generic);
}
SmallVector<AffineMap> BatchNormalizationOp::getIndexingMaps() {
  int64_t rank = tensorOf(getOperand()).getRank();
  AffineMap all = AffineMap::getMultiDimIdentityMap(rank, getContext());
  AffineMap channel = AffineMap::get(rank, 0, getAffineDimExpr(rank - 1, getContext()));
  return {all, channel, channel, channel, channel, all};
}

// ---- standardisation inside a sample

LogicalResult StandardizeOp::verify() {
  RankedTensorType type = tensorOf(getOperand());
  int64_t first = isSplit(type);
  if (getDims().empty())
    return emitOpError("expected one axis or more, found none");
  for (auto [i, dim] : llvm::enumerate(getDims())) {
    if (dim < first || dim >= type.getRank())
      return emitOpError("expected axes from ") << first << " to " << type.getRank() - 1 << ", found " << dim;
    if (i > 0 && dim <= getDims()[i - 1])
      return emitOpError("expected axes in increasing order, found ") << dim << " after " << getDims()[i - 1];
  }
  return verifyEpsilon(*this, getEpsilon());
}
static Expr meanOver(const Expr &x, ArrayRef<int64_t> dims) {
  double size = 1;
  for (int64_t dim : dims)
    size *= x.type().getDimSize(dim);
  return sumOver(x, dims) / size;
}
Value StandardizeOp::decompose(OpBuilder &builder) {
  Expr x(builder, getLoc(), getOperand());
  Expr centred = x - meanOver(x, getDims());
  return (centred * rsqrt(meanOver(square(centred), getDims()) + number(getEpsilon()))).value();
}
// dx = (dy - mean dy - y mean(dy y)) / deviation
void StandardizeOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                  SmallVectorImpl<Value> &operandGradients) {
  if (!resultGradients[0])
    return operandGradients.push_back({});
  Expr x(builder, getLoc(), getOperand()), y(builder, getLoc(), getResult());
  Expr dy = broadcastTo(Expr(builder, getLoc(), resultGradients[0]), x.type());
  Expr centred = x - meanOver(x, getDims());
  Expr factor = rsqrt(meanOver(square(centred), getDims()) + number(getEpsilon()));
  operandGradients.push_back(((dy - meanOver(dy, getDims()) - y * meanOver(dy * y, getDims())) * factor).value());
}
LogicalResult StandardizeOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                       SmallVectorImpl<Tensor> &results) {
  Tensor result = operands[0];
  SmallVector<int64_t> kept(result.shape);
  for (int64_t dim : getDims())
    kept[dim] = 1;
  Tensor mean(kept), variance(kept);
  double size = double(result.size()) / mean.size();
  auto forEach = [&](auto &&use) {
    int64_t i = 0;
    for (Index index(result.shape); !index.done(); index.next())
      use(result.data[i++], index.offsetIn(kept));
  };
  forEach([&](double &x, int64_t at) { mean.data[at] += x / size; });
  forEach([&](double &x, int64_t at) { variance.data[at] += (x - mean.data[at]) * (x - mean.data[at]) / size; });
  forEach(
      [&](double &x, int64_t at) { x = (x - mean.data[at]) / std::sqrt(variance.data[at] + number(getEpsilon())); });
  results.push_back(std::move(result));
  return success();
}
int64_t StandardizeOp::getFlops() { return 6 * elementsPerRow(getType()); }
SmallVector<utils::IteratorType> StandardizeOp::getLoopIteratorTypes() {
  SmallVector<utils::IteratorType> loops = elementwiseLoops(getOperation());
  for (int64_t dim : getDims())
    loops[dim] = utils::IteratorType::reduction;
  return loops;
}
SmallVector<shard::ReductionKind> StandardizeOp::getReductionLoopIteratorKinds() {
  return SmallVector<shard::ReductionKind>(getDims().size(), shard::ReductionKind::Generic);
}
SmallVector<AffineMap> StandardizeOp::getIndexingMaps() { return elementwiseMaps(getOperation()); }
