// SPDX-License-Identifier: Apache-2.0
//
// mt.pool and mt.pool_gradient.
#include "dialects/mt/Defaults.h"
#include "dialects/mt/Expr.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Numbers.h"
#include "dialects/mt/Types.h"

using namespace mlir;
using namespace mlir::mt;
using utils::IteratorType;

static FailureOr<Pooling> poolingOf(std::optional<Location> location, Reduction kind, RankedTensorType x,
                                    ArrayRef<int64_t> window, ArrayRef<int64_t> strides, ArrayRef<int64_t> padding) {
  if (kind == Reduction::min)
    return emitOptionalError(location, "expected max or sum, found ", stringifyReduction(kind));
  auto windows = windowsOver(location, x, {window, strides, padding, {1, 1}});
  if (failed(windows))
    return failure();
  return Pooling{windows->first, windows->second, x.getDimSize(3)};
}
static RankedTensorType outputType(RankedTensorType x, const Pooling &p) {
  return RankedTensorType::get({x.getDimSize(0), p.rows.outputs, p.columns.outputs, p.channels},
                               computedType(x.getElementType()));
}

// Maps of x and y from the loops n, oh, ow, c, kh, kw.
static SmallVector<AffineMap> maps(const Pooling &p, MLIRContext *context) {
  AffineExpr n, oh, ow, c, kh, kw;
  bindDims(context, n, oh, ow, c, kh, kw);
  return {AffineMap::get(6, 0, {n, p.rows.at(oh, kh), p.columns.at(ow, kw), c}, context),
          AffineMap::get(6, 0, {n, oh, ow, c}, context)};
}
static SmallVector<IteratorType> parallelPoolLoops(ArrayRef<int64_t> parallel) {
  SmallVector<IteratorType> loops(6, IteratorType::reduction);
  for (int64_t loop : parallel)
    loops[loop] = IteratorType::parallel;
  return loops;
}

// Calls use(y, x) for each output element, with the offsets of its window's elements in row-major order.
static void forEachWindow(const Pooling &p, int64_t samples, llvm::function_ref<void(int64_t, ArrayRef<int64_t>)> use) {
  int64_t y = 0;
  for (int64_t n = 0; n < samples; ++n)
    for (int64_t oh = 0; oh < p.rows.outputs; ++oh)
      for (int64_t ow = 0; ow < p.columns.outputs; ++ow)
        for (int64_t c = 0; c < p.channels; ++c, ++y) {
          SmallVector<int64_t> x;
          for (int64_t kh = 0; kh < p.rows.taps; ++kh)
            for (int64_t kw = 0; kw < p.columns.taps; ++kw)
              if (int64_t ih = p.rows.at(oh, kh), iw = p.columns.at(ow, kw); p.rows.holds(ih) && p.columns.holds(iw))
                x.push_back(((n * p.rows.inputs + ih) * p.columns.inputs + iw) * p.channels + c);
          use(y, x);
        }
}

// Offset of the first largest element, or of the first NaN.
static int64_t largest(const Tensor &x, ArrayRef<int64_t> offsets) {
  int64_t best = offsets[0];
  for (int64_t offset : offsets)
    if (beats(x.data[offset], x.data[best]))
      best = offset;
  return best;
}

LogicalResult PoolOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor given,
                                       SmallVectorImpl<Type> &types) {
  Adaptor adaptor = withDefaults<PoolOp>(context, given);
  RankedTensorType x = tensorOf(adaptor.getInput());
  FailureOr<Pooling> p =
      poolingOf(location, adaptor.getKind(), x, adaptor.getWindow(), adaptor.getStrides(), adaptor.getPadding());
  if (failed(p))
    return failure();
  types.push_back(outputType(x, *p));
  return success();
}
Pooling PoolOp::getPooling() {
  return *poolingOf(std::nullopt, getKind(), tensorOf(getInput()), getWindow(), getStrides(), getPadding());
}
float PoolOp::getWindowStart() { return startOf(getKind()); }
Value PoolOp::foldElement(OpBuilder &builder, Value running, Value next) {
  return combine(builder, getLoc(), getKind(), running, next);
}
int64_t PoolOp::getFlops() { return elementsPerRow(getType()) * getWindow()[0] * getWindow()[1]; }
SmallVector<IteratorType> PoolOp::getLoopIteratorTypes() { return parallelPoolLoops({0, 1, 2, 3}); }
SmallVector<shard::ReductionKind> PoolOp::getReductionLoopIteratorKinds() {
  return SmallVector<shard::ReductionKind>(2, getKind() == Reduction::sum ? shard::ReductionKind::Sum
                                                                          : shard::ReductionKind::Max);
}
SmallVector<AffineMap> PoolOp::getIndexingMaps() { return maps(getPooling(), getContext()); }

LogicalResult PoolOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                SmallVectorImpl<Tensor> &results) {
  const Tensor &x = operands[0];
  Tensor result(concreteShape(getType(), context.rows));
  forEachWindow(getPooling(), context.rows, [&](int64_t y, ArrayRef<int64_t> window) {
    if (getKind() == Reduction::max)
      result.data[y] = x.data[largest(x, window)];
    else
      for (int64_t offset : window)
        result.data[y] += x.data[offset];
  });
  results.push_back(std::move(result));
  return success();
}

void PoolOp::buildGradient(OpBuilder &builder, ValueRange resultGradients, SmallVectorImpl<Value> &operandGradients) {
  Value dy = resultGradients[0], x = getKind() == Reduction::max ? getInput() : Value();
  operandGradients.push_back(dy ? PoolGradientOp::create(builder, getLoc(), getInput().getType(), getKind(), dy, x,
                                                         getWindow(), getStrides(), getPadding())
                                      .getResult()
                                : Value());
}

LogicalResult PoolGradientOp::verify() {
  FailureOr<Pooling> p = poolingOf(getLoc(), getKind(), getType(), getWindow(), getStrides(), getPadding());
  if (failed(p))
    return failure();
  if (RankedTensorType y = outputType(getType(), *p); tensorOf(getGradient()).getShape() != y.getShape())
    return emitOpError("expected a gradient ")
           << y << " of the pool of " << getType() << ", found " << getGradient().getType();
  if (getKind() == Reduction::sum && getInput())
    return emitOpError("expected images for max only, found some for sum");
  if (getKind() == Reduction::max && (!getInput() || tensorOf(getInput()).getShape() != getType().getShape())) {
    InFlightDiagnostic error = emitOpError("expected images ") << getType() << " for max, found ";
    return getInput() ? error << getInput().getType() : error << "none";
  }
  return success();
}
Pooling PoolGradientOp::getPooling() {
  return *poolingOf(std::nullopt, getKind(), getType(), getWindow(), getStrides(), getPadding());
}
int64_t PoolGradientOp::getFlops() {
  return elementsPerRow(getGradient().getType()) * (getKind() == Reduction::sum ? getWindow()[0] * getWindow()[1] : 1);
}
SmallVector<IteratorType> PoolGradientOp::getLoopIteratorTypes() { return parallelPoolLoops({0, 3}); }
SmallVector<shard::ReductionKind> PoolGradientOp::getReductionLoopIteratorKinds() {
  return SmallVector<shard::ReductionKind>(4, shard::ReductionKind::Sum);
}
SmallVector<AffineMap> PoolGradientOp::getIndexingMaps() {
  SmallVector<AffineMap> all = maps(getPooling(), getContext());
  if (getInput())
    return {all[1], all[0], all[0]};
  return {all[1], all[0]};
}

LogicalResult PoolGradientOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                        SmallVectorImpl<Tensor> &results) {
  const Tensor &dy = operands[0];
  Tensor result(concreteShape(getType(), context.rows));
  forEachWindow(getPooling(), context.rows, [&](int64_t y, ArrayRef<int64_t> window) {
    if (getKind() == Reduction::max)
      result.data[largest(operands[1], window)] += dy.data[y];
    else
      for (int64_t offset : window)
        result.data[offset] += dy.data[y];
  });
  results.push_back(std::move(result));
  return success();
}

// ---- gradient of the gradient

namespace {
// The elements of all windows at one tap after the other, as slices of images with padding.
class Taps {
public:
  Taps(OpBuilder &builder, Location location, const Pooling &p) : builder(builder), location(location), p(p) {}

  // Images [?, H, W, C] with the padding of the windows, filled with `value`.
  Value padded(Value images, float value) {
    SmallVector<int64_t> low = {p.rows.low, p.columns.low, 0}, high = {p.rows.high, p.columns.high, 0};
    if (llvm::all_of(low, [](int64_t n) { return n == 0; }) && llvm::all_of(high, [](int64_t n) { return n == 0; }))
      return images;
    return PadOp::create(builder, location, images, low, high, ArrayRef<int64_t>{}, llvm::APFloat(value));
  }
  // [?, OH, OW, C]
  Expr at(Value images, int64_t kh, int64_t kw) {
    SmallVector<int64_t> starts = {kh, kw, 0}, sizes = {p.rows.outputs, p.columns.outputs, p.channels},
                         strides = {p.rows.stride, p.columns.stride, 1};
    return Expr(builder, location, SliceOp::create(builder, location, images, starts, sizes, strides));
  }
  // Mask [OH, OW, 1] of the windows whose first element is at this tap, the others before it being padding. No mask
  // where there is no such window.
  std::optional<Expr> begins(int64_t kh, int64_t kw) {
    auto isFirst = [](const Window &axis, int64_t output, int64_t tap) {
      return axis.holds(axis.at(output, tap)) && (tap == 0 || !axis.holds(axis.at(output, tap - 1)));
    };
    SmallVector<bool> first;
    for (int64_t oh = 0; oh < p.rows.outputs; ++oh)
      for (int64_t ow = 0; ow < p.columns.outputs; ++ow)
        first.push_back(isFirst(p.rows, oh, kh) && isFirst(p.columns, ow, kw));
    if (llvm::none_of(first, [](bool is) { return is; }))
      return std::nullopt;
    auto type = RankedTensorType::get({p.rows.outputs, p.columns.outputs, 1}, builder.getI1Type());
    return Expr(builder, location,
                ConstantOp::create(builder, location, DenseElementsAttr::get(type, ArrayRef<bool>(first))));
  }

private:
  OpBuilder &builder;
  Location location;
  const Pooling &p;
};
} // namespace

// Each output's element of `values` [?, H, W, C] at the place of its window's largest element of `images`.
static Value takeLargest(OpBuilder &builder, Location location, const Pooling &p, Value images, Value values) {
  Taps taps(builder, location, p);
  Value x = taps.padded(images, -INFINITY), of = taps.padded(values, 0);
  Expr best = taps.at(x, 0, 0), taken = taps.at(of, 0, 0);
  for (int64_t kh = 0; kh < p.rows.taps; ++kh)
    for (int64_t kw = 0; kw < p.columns.taps; ++kw) {
      if (kh == 0 && kw == 0)
        continue;
      Expr next = taps.at(x, kh, kw), value = taps.at(of, kh, kw);
      // `beats` of Numbers.h: a NaN beats every number.
      Expr atNan = select(best == best, value, taken);
      Expr kept = select(next > best, value, select(next == next, taken, atNan));
      std::optional<Expr> first = taps.begins(kh, kw);
      taken = first ? select(*first, value, kept) : kept;
      best = maximum(best, next);
    }
  return taken.value();
}

void PoolGradientOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                   SmallVectorImpl<Value> &operandGradients) {
  Value ddx = resultGradients[0], ddy;
  if (ddx && getKind() == Reduction::max)
    ddy = takeLargest(builder, getLoc(), getPooling(), getInput(), ddx);
  else if (ddx)
    ddy = PoolOp::create(builder, getLoc(), getKind(), ddx, getWindow(), getStrides(), getPadding());
  operandGradients.push_back(ddy);
  operandGradients.append(getNumOperands() - 1, {});
}
