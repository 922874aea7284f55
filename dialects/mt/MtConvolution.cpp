// SPDX-License-Identifier: Apache-2.0
//
// Convolution and its two gradients: a sum of products over seven loops (sample; row, column and filter of the output;
// row, column and channel of the tap). Each of the three ops reduces other loops.
#include "dialects/mt/Defaults.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Types.h"

using namespace mlir;
using namespace mlir::mt;
using utils::IteratorType;

// Geometry from the types of x and w.
static FailureOr<Convolution> convolutionOf(std::optional<Location> location, RankedTensorType x, RankedTensorType w,
                                            ArrayRef<int64_t> strides, ArrayRef<int64_t> padding,
                                            ArrayRef<int64_t> dilation, int64_t groups) {
  if (w.getRank() != 4 || !w.hasStaticShape())
    return emitOptionalError(location, "expected a kernel tensor<KHxKWxCxFxf32>, found ", w);
  auto windows = windowsOver(location, x, {w.getShape().take_front(2), strides, padding, dilation});
  if (failed(windows))
    return failure();
  int64_t channels = x.getDimSize(3), filters = w.getDimSize(3);
  if (groups < 1 || channels % groups != 0 || filters < 1 || filters % groups != 0)
    return emitOptionalError(location, "expected groups that divide ", channels, " channels and ", filters,
                             " filters, found ", groups);
  if (w.getDimSize(2) != channels / groups)
    return emitOptionalError(location, "expected a kernel for ", channels / groups, " channels, found one for ",
                             w.getDimSize(2));
  return Convolution{windows->first, windows->second, channels, filters, groups};
}

static RankedTensorType outputType(RankedTensorType x, const Convolution &c) {
  return RankedTensorType::get({x.getDimSize(0), c.rows.outputs, c.columns.outputs, c.filters},
                               computedType(x.getElementType()));
}

// Verifies that the operand dy of a gradient has the shape of the convolution of x and w.
template <typename Op>
static LogicalResult verifyGradient(Op op, RankedTensorType x, RankedTensorType w, RankedTensorType dy) {
  FailureOr<Convolution> c =
      convolutionOf(op.getLoc(), x, w, op.getStrides(), op.getPadding(), op.getDilation(), op.getGroups());
  if (failed(c))
    return failure();
  if (RankedTensorType y = outputType(x, *c); dy.getShape() != y.getShape())
    return op.emitOpError("expected a gradient ")
           << y << " of the convolution of " << x << " and " << w << ", found " << dy;
  return success();
}

template <typename Op> static Convolution verified(Op op, RankedTensorType x, RankedTensorType w) {
  return *convolutionOf(std::nullopt, x, w, op.getStrides(), op.getPadding(), op.getDilation(), op.getGroups());
}

// ---- Common parts, with maps in the order x, w, y

static SmallVector<AffineMap> maps(const Convolution &c, MLIRContext *context) {
  AffineExpr n, oh, ow, f, kh, kw, k;
  bindDims(context, n, oh, ow, f, kh, kw, k);
  AffineExpr channel = c.groups == 1 ? k : f.floorDiv(c.groupFilters()) * c.groupChannels() + k;
  auto map = [&](ArrayRef<AffineExpr> axes) { return AffineMap::get(7, 0, axes, context); };
  return {map({n, c.rows.at(oh, kh), c.columns.at(ow, kw), channel}), map({kh, kw, k, f}), map({n, oh, ow, f})};
}

// All loops are reductions but these: n 0, oh 1, ow 2, f 3, kh 4, kw 5, c 6.
static SmallVector<IteratorType> parallelLoops(ArrayRef<int64_t> parallel) {
  SmallVector<IteratorType> loops(7, IteratorType::reduction);
  for (int64_t loop : parallel)
    loops[loop] = IteratorType::parallel;
  return loops;
}
static SmallVector<shard::ReductionKind> sums(size_t count) {
  return SmallVector<shard::ReductionKind>(count, shard::ReductionKind::Sum);
}

// Calls use(x, w, y) for each product, with the offsets of the elements, in row-major order of n, oh, ow, f, kh, kw, c.
static void forEachProduct(const Convolution &c, int64_t samples,
                           llvm::function_ref<void(int64_t, int64_t, int64_t)> use) {
  int64_t y = 0;
  for (int64_t n = 0; n < samples; ++n)
    for (int64_t oh = 0; oh < c.rows.outputs; ++oh)
      for (int64_t ow = 0; ow < c.columns.outputs; ++ow)
        for (int64_t f = 0; f < c.filters; ++f, ++y)
          for (int64_t kh = 0; kh < c.rows.taps; ++kh)
            for (int64_t kw = 0; kw < c.columns.taps; ++kw) {
              int64_t ih = c.rows.at(oh, kh), iw = c.columns.at(ow, kw);
              if (!c.rows.holds(ih) || !c.columns.holds(iw))
                continue;
              int64_t x = ((n * c.rows.inputs + ih) * c.columns.inputs + iw) * c.channels + c.firstChannel(f);
              int64_t w = (kh * c.columns.taps + kw) * c.groupChannels() * c.filters + f;
              for (int64_t k = 0; k < c.groupChannels(); ++k)
                use(x + k, w + k * c.filters, y);
            }
}

// ---- y = conv(x, w)

LogicalResult Conv2DOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor given,
                                         SmallVectorImpl<Type> &types) {
  Adaptor adaptor = withDefaults<Conv2DOp>(context, given);
  RankedTensorType x = tensorOf(adaptor.getInput());
  FailureOr<Convolution> c = convolutionOf(location, x, tensorOf(adaptor.getKernel()), adaptor.getStrides(),
                                           adaptor.getPadding(), adaptor.getDilation(), adaptor.getGroups());
  if (failed(c))
    return failure();
  types.push_back(outputType(x, *c));
  return success();
}
Convolution Conv2DOp::getConvolution() { return verified(*this, tensorOf(getInput()), tensorOf(getKernel())); }
bool Conv2DOp::takesEpilogue() { return true; }
int64_t Conv2DOp::getFlops() { return getConvolution().flops(); }
SmallVector<IteratorType> Conv2DOp::getLoopIteratorTypes() { return parallelLoops({0, 1, 2, 3}); }
SmallVector<shard::ReductionKind> Conv2DOp::getReductionLoopIteratorKinds() { return sums(3); }
SmallVector<AffineMap> Conv2DOp::getIndexingMaps() { return maps(getConvolution(), getContext()); }

LogicalResult Conv2DOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                  SmallVectorImpl<Tensor> &results) {
  Tensor result(concreteShape(getType(), context.rows));
  forEachProduct(getConvolution(), context.rows,
                 [&](int64_t x, int64_t w, int64_t y) { result.data[y] += operands[0].data[x] * operands[1].data[w]; });
  results.push_back(std::move(result));
  return success();
}

// The gradients of each of the three ops are the other two.
template <typename Op> static Value inputGradient(OpBuilder &builder, Op op, Type x, Value dy, Value w) {
  return Conv2DInputGradientOp::create(builder, op.getLoc(), x, dy, w, op.getStrides(), op.getPadding(),
                                       op.getDilation(), op.getGroups());
}
template <typename Op> static Value kernelGradient(OpBuilder &builder, Op op, Type w, Value x, Value dy) {
  return Conv2DKernelGradientOp::create(builder, op.getLoc(), w, x, dy, op.getStrides(), op.getPadding(),
                                        op.getDilation(), op.getGroups());
}
template <typename Op> static Value convolve(OpBuilder &builder, Op op, Value x, Value w) {
  return Conv2DOp::create(builder, op.getLoc(), x, w, op.getStrides(), op.getPadding(), op.getDilation(),
                          op.getGroups());
}

void Conv2DOp::buildGradient(OpBuilder &builder, ValueRange resultGradients, SmallVectorImpl<Value> &operandGradients) {
  Value dy = resultGradients[0];
  operandGradients.push_back(dy ? inputGradient(builder, *this, getInput().getType(), dy, getKernel()) : Value());
  operandGradients.push_back(dy ? kernelGradient(builder, *this, getKernel().getType(), getInput(), dy) : Value());
}

// ---- dx

LogicalResult Conv2DInputGradientOp::verify() {
  return verifyGradient(*this, getType(), tensorOf(getKernel()), tensorOf(getGradient()));
}
Convolution Conv2DInputGradientOp::getConvolution() { return verified(*this, getType(), tensorOf(getKernel())); }
bool Conv2DInputGradientOp::takesEpilogue() { return true; }
std::string Conv2DInputGradientOp::getWord() { return "input_gradient"; }
int64_t Conv2DInputGradientOp::getFlops() { return getConvolution().flops(); }
SmallVector<IteratorType> Conv2DInputGradientOp::getLoopIteratorTypes() { return parallelLoops({0, 6}); }
SmallVector<shard::ReductionKind> Conv2DInputGradientOp::getReductionLoopIteratorKinds() { return sums(5); }
SmallVector<AffineMap> Conv2DInputGradientOp::getIndexingMaps() {
  SmallVector<AffineMap> all = maps(getConvolution(), getContext());
  return {all[2], all[1], all[0]};
}

LogicalResult Conv2DInputGradientOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                               SmallVectorImpl<Tensor> &results) {
  Tensor result(concreteShape(getType(), context.rows));
  forEachProduct(getConvolution(), context.rows,
                 [&](int64_t x, int64_t w, int64_t y) { result.data[x] += operands[0].data[y] * operands[1].data[w]; });
  results.push_back(std::move(result));
  return success();
}

void Conv2DInputGradientOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                          SmallVectorImpl<Value> &operandGradients) {
  Value ddx = resultGradients[0];
  operandGradients.push_back(ddx ? convolve(builder, *this, ddx, getKernel()) : Value());
  operandGradients.push_back(ddx ? kernelGradient(builder, *this, getKernel().getType(), ddx, getGradient()) : Value());
}

// ---- dw

// Type of the kernel's gradient, without the batch axis that the gradient of each sample has.
static RankedTensorType kernelOf(Conv2DKernelGradientOp op) {
  RankedTensorType type = op.getType();
  return isSplit(type) ? type.clone(type.getShape().drop_front()) : type;
}

LogicalResult Conv2DKernelGradientOp::verify() {
  if (isSplit(getType()) && (*this)->getParentOfType<ModelOp>())
    return emitOpError("expected a sum over the batch in a model, found the gradients of single samples ") << getType();
  return verifyGradient(*this, tensorOf(getInput()), kernelOf(*this), tensorOf(getGradient()));
}
Convolution Conv2DKernelGradientOp::getConvolution() { return verified(*this, tensorOf(getInput()), kernelOf(*this)); }
std::string Conv2DKernelGradientOp::getWord() { return "kernel_gradient"; }
int64_t Conv2DKernelGradientOp::getFlops() { return getConvolution().flops(); }
SmallVector<IteratorType> Conv2DKernelGradientOp::getLoopIteratorTypes() {
  return isSplit(getType()) ? parallelLoops({0, 3, 4, 5, 6}) : parallelLoops({3, 4, 5, 6});
}
SmallVector<shard::ReductionKind> Conv2DKernelGradientOp::getReductionLoopIteratorKinds() {
  return sums(isSplit(getType()) ? 2 : 3);
}
SmallVector<AffineMap> Conv2DKernelGradientOp::getIndexingMaps() {
  SmallVector<AffineMap> all = maps(getConvolution(), getContext());
  AffineMap kernel = isSplit(getType()) ? all[1].insertResult(getAffineDimExpr(0, getContext()), 0) : all[1];
  return {all[0], all[2], kernel};
}

LogicalResult Conv2DKernelGradientOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                                SmallVectorImpl<Tensor> &results) {
  Tensor result(concreteShape(getType(), context.rows));
  // A result with a batch axis has one sum per sample, any other result one sum.
  int64_t outputs = elementsPerRow(getGradient().getType()), step = isSplit(getType()) ? elementsPerRow(getType()) : 0;
  forEachProduct(getConvolution(), context.rows, [&](int64_t x, int64_t w, int64_t y) {
    result.data[y / outputs * step + w] += operands[0].data[x] * operands[1].data[y];
  });
  results.push_back(std::move(result));
  return success();
}

void Conv2DKernelGradientOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                           SmallVectorImpl<Value> &operandGradients) {
  Value ddw = resultGradients[0];
  operandGradients.push_back(ddw ? inputGradient(builder, *this, getInput().getType(), getGradient(), ddw) : Value());
  operandGradients.push_back(ddw ? convolve(builder, *this, getInput(), ddw) : Value());
}
