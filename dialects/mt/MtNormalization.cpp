// SPDX-License-Identifier: Apache-2.0
//
// Normalization.
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Expr.h"
#include "dialects/mt/Gradient.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Numbers.h"
#include "dialects/mt/Types.h"

using namespace mlir;
using namespace mlir::mt;

static LogicalResult verifyEpsilon(Operation *op, const llvm::APFloat &epsilon) {
  if (!(number(epsilon) >= 0 && epsilon.isFinite()))
    return op->emitOpError("expected a finite epsilon of 0 or more, found ") << number(epsilon);
  return success();
}

// ---- batch normalization

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

static Expr reduceSum(const Expr &a, ArrayRef<int64_t> dims) {
  return a.make(ReduceOp::create(a.getBuilder(), a.getLocation(), Reduction::sum, a.value(), dims));
}
static Expr reshape(const Expr &a, ArrayRef<int64_t> shape) {
  return a.make(ReshapeOp::create(a.getBuilder(), a.getLocation(), a.type().clone(shape), a.value()));
}

namespace {
// Groups of samples that share statistics: the global batch, or, with `local_statistics`, the samples of each shard.
// Statistics of shards are rows of a table; each sample adds to the row of its shard. In the all-reduce, the other
// shards' parts of a row are zeros, so the additions of the tree do not change it.
class Groups {
public:
  explicit Groups(BatchNormalizationOp op, const Expr &x) : x(x) {
    Compilation compilation(op);
    if (!compilation.hasLocalStatistics())
      return;
    shards = compilation.getShards();
    shardRows = compilation.getShardRows();
  }

  // Sum per channel, [C], or [R, C] for the table of shards. First the elements of each sample are summed.
  Expr sum(Expr values) const {
    int64_t rank = values.type().getRank();
    if (rank > 2)
      values = reduceSum(values, llvm::to_vector(llvm::seq<int64_t>(1, rank - 1)));
    if (!shards)
      return reduceSum(values, {0});
    auto table = RankedTensorType::get({shards, channels()}, values.type().getElementType());
    return x.make(ScatterAddOp::create(x.getBuilder(), x.getLocation(), table, ids(), values.value()));
  }
  // Number of values per channel, at least 1: rank 0, or [R, 1].
  Expr size() const {
    Expr n = samples();
    if (shards) {
      auto numbers = RankedTensorType::get({shards, 1}, x.type().getElementType());
      Expr shard = x.make(IotaOp::create(x.getBuilder(), x.getLocation(), numbers, 0));
      n = maximum(minimum(n - shard * double(shardRows), double(shardRows)), 1.0);
    }
    int64_t inner = elementsPerRow(x.type()) / channels();
    return inner == 1 ? n : n * static_cast<double>(inner);
  }
  Expr mean(const Expr &values) const { return sum(values) / size(); }
  // The statistic of each sample's group: [C] unchanged, [R, C] as [?, 1, ..., C].
  Expr of(const Expr &statistic) const {
    if (!shards)
      return statistic;
    Expr rows = x.make(GatherOp::create(x.getBuilder(), x.getLocation(), statistic.value(), ids()));
    SmallVector<int64_t> shape(x.type().getShape());
    std::fill(shape.begin() + 1, shape.end() - 1, 1);
    return reshape(rows, shape);
  }
  // Sum over all shards, [C].
  Expr total(const Expr &sums) const { return shards ? reduceSum(sums, {0}) : sums; }
  // Mean over all samples, [C], for the moving averages: shards are weighted by their numbers of samples.
  Expr average(const Expr &statistic) const {
    if (!shards)
      return statistic;
    auto numbers = RankedTensorType::get({shards, 1}, x.type().getElementType());
    Expr shard = x.make(IotaOp::create(x.getBuilder(), x.getLocation(), numbers, 0));
    Expr held = maximum(minimum(samples() - shard * double(shardRows), double(shardRows)), 0.0);
    return total(statistic * held) / samples();
  }

  // Number of samples of a group, for the reference evaluation.
  int64_t rows(int64_t all) const { return shards ? std::min(shardRows, all) : all; }

private:
  int64_t channels() const { return x.type().getShape().back(); }
  Expr samples() const {
    OpBuilder &builder = x.getBuilder();
    return x.make(BatchSizeOp::create(builder, x.getLocation(), RankedTensorType::get({}, x.type().getElementType())));
  }
  // The index of each sample's shard.
  Value ids() const {
    OpBuilder &builder = x.getBuilder();
    Type batch = x.type().clone({x.type().getShape().front()});
    Expr sample = x.make(IotaOp::create(builder, x.getLocation(), batch, 0));
    Expr shard = floor((sample + 0.5) * (1.0 / double(shardRows)));
    return CastOp::create(builder, x.getLocation(), cast<RankedTensorType>(batch).clone(builder.getI32Type()),
                          shard.value());
  }

  Expr x;
  int64_t shards = 0, shardRows = 0;
};

// Statistics in two passes (mean, then centered squares), which avoids cancellation.
struct Statistics {
  Expr mean, centred, variance;
  Statistics(const Expr &x, const Groups &groups)
      : mean(groups.mean(x)), centred(x - groups.of(mean)), variance(groups.mean(square(centred))) {}
};
} // namespace

static bool isSplat(Value value, double number) {
  SplatElementsAttr splat = splatOf(value);
  return splat && splat.getSplatValue<llvm::APFloat>().isExactlyValue(number);
}

Value BatchNormalizationOp::decompose(OpBuilder &builder) {
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  Expr x = e(getOperand()), mean = e(getMean()), variance = e(getVariance()), centred = x;
  Groups groups(*this, x);
  if (getTraining()) {
    Statistics batch(x, groups);
    centred = batch.centred, variance = batch.variance;
  } else {
    centred = x - mean;
  }
  Expr factor = rsqrt(variance + number(getEpsilon()));
  if (!isSplat(getGamma(), 1))
    factor = e(getGamma()) * factor;
  Expr y = centred * (getTraining() ? groups.of(factor) : factor);
  return (isSplat(getBeta(), 0) ? y : y + e(getBeta())).value();
}

// With x' = (x - mean) / deviation: dbeta = sum dy, dgamma = sum dy x', dx = gamma / deviation (dy - (dbeta + x'
// dgamma) / size). dx includes the paths through mean and variance, so these two have no gradient.
void BatchNormalizationOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                         SmallVectorImpl<Value> &operandGradients) {
  if (!getTraining() || !resultGradients[0])
    return buildDecomposedGradient(builder, *this, resultGradients, operandGradients);
  auto e = [&](Value value) { return Expr(builder, getLoc(), value); };
  Expr x = e(getOperand()), gamma = e(getGamma());
  Expr dy = broadcastTo(e(resultGradients[0]), x.type());
  Groups groups(*this, x);
  Statistics batch(x, groups);
  Expr factor = rsqrt(batch.variance + number(getEpsilon())), size = groups.size();
  Expr dbeta = groups.sum(dy), dgamma = groups.sum(dy * batch.centred) * factor;
  Expr dx =
      (dy - groups.of(dbeta / size) - batch.centred * groups.of(factor * dgamma / size)) * groups.of(gamma * factor);
  operandGradients.append({dx.value(), groups.total(dgamma).value(), groups.total(dbeta).value(), Value(), Value()});
}

void BatchNormalizationOp::beginTraining(OpBuilder &builder, Value,
                                         SmallVectorImpl<std::pair<unsigned, Value>> &updates) {
  if (getFrozen())
    return;
  setTraining(true);
  Expr x(builder, getLoc(), getOperand());
  Groups groups(*this, x);
  Statistics batch(x, groups);
  auto moved = [&](Value old, const Expr &found) {
    return (Expr(builder, getLoc(), old) * number(getMomentum()) + found * oneMinus(getMomentum())).value();
  };
  updates.push_back({3, moved(getMean(), groups.average(batch.mean))});
  updates.push_back({4, moved(getVariance(), groups.average(batch.variance))});
}

LogicalResult BatchNormalizationOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                              SmallVectorImpl<Tensor> &results) {
  const Tensor &x = operands[0];
  int64_t channels = x.shape.back(), all = x.size() / std::max<int64_t>(channels, 1);
  int64_t each = all / std::max<int64_t>(x.shape.front(), 1), group = all;
  if (getTraining()) {
    OpBuilder builder(getContext());
    group = each * Groups(*this, Expr(builder, getLoc(), getOperand())).rows(x.shape.front());
  }
  Tensor result = x;
  for (int64_t begin = 0; begin < all; begin += std::max<int64_t>(group, 1))
    for (int64_t c = 0; c < channels; ++c) {
      int64_t end = std::min(begin + group, all), size = end - begin;
      double mean = operands[3].data[c], variance = operands[4].data[c];
      if (getTraining()) {
        mean = variance = 0;
        for (int64_t i = begin; i < end; ++i)
          mean += x.data[i * channels + c] / size;
        for (int64_t i = begin; i < end; ++i)
          variance += (x.data[i * channels + c] - mean) * (x.data[i * channels + c] - mean) / size;
      }
      for (int64_t i = begin; i < end; ++i)
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

// ---- normalization within a sample

LogicalResult NormalizeOp::verify() {
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
Value NormalizeOp::decompose(OpBuilder &builder) {
  Expr x(builder, getLoc(), getOperand());
  Expr centred = x - meanOver(x, getDims());
  return (centred * rsqrt(meanOver(square(centred), getDims()) + number(getEpsilon()))).value();
}
// dx = (dy - mean dy - y mean(dy y)) / deviation
void NormalizeOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                SmallVectorImpl<Value> &operandGradients) {
  if (!resultGradients[0])
    return operandGradients.push_back({});
  Expr x(builder, getLoc(), getOperand()), y(builder, getLoc(), getResult());
  Expr dy = broadcastTo(Expr(builder, getLoc(), resultGradients[0]), x.type());
  Expr centred = x - meanOver(x, getDims());
  Expr factor = rsqrt(meanOver(square(centred), getDims()) + number(getEpsilon()));
  operandGradients.push_back(((dy - meanOver(dy, getDims()) - y * meanOver(dy * y, getDims())) * factor).value());
}
LogicalResult NormalizeOp::interpret(const EvalContext &, ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
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
int64_t NormalizeOp::getFlops() { return 6 * elementsPerRow(getType()); }
SmallVector<utils::IteratorType> NormalizeOp::getLoopIteratorTypes() {
  SmallVector<utils::IteratorType> loops = elementwiseLoops(getOperation());
  for (int64_t dim : getDims())
    loops[dim] = utils::IteratorType::reduction;
  return loops;
}
SmallVector<shard::ReductionKind> NormalizeOp::getReductionLoopIteratorKinds() {
  return SmallVector<shard::ReductionKind>(getDims().size(), shard::ReductionKind::Generic);
}
SmallVector<AffineMap> NormalizeOp::getIndexingMaps() { return elementwiseMaps(getOperation()); }
