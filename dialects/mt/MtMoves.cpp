// SPDX-License-Identifier: Apache-2.0
//
// mt.pad, mt.slice, mt.concat and mt.reverse move elements within a sample. Each op describes the source of an element
// by an affine map of its loops, from which it is evaluated.
#include "dialects/mt/Defaults.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Types.h"
#include <cmath>

using namespace mlir;
using namespace mlir::mt;
using utils::IteratorType;

// Number of first axes that lists of integers leave out: the batch axis.
static int64_t skippedAxes(RankedTensorType type) { return isSplit(type); }

static LogicalResult verifyList(std::optional<Location> location, StringRef what, RankedTensorType type,
                                ArrayRef<int64_t> list, int64_t least, bool mayBeEmpty = false) {
  size_t count = type.getRank() - skippedAxes(type);
  if (list.size() != count && !(mayBeEmpty && list.empty()))
    return emitOptionalError(location, "expected ", count, " numbers as ", what, " of ", type, ", found ", list.size());
  for (int64_t number : list)
    if (number < least || number >= maxExtent)
      return emitOptionalError(location, "expected ", what, " from ", least, " to ", maxExtent - 1, ", found ", number);
  for (int64_t size : type.getShape().drop_front(skippedAxes(type)))
    if (size >= maxExtent)
      return emitOptionalError(location, "expected sizes up to ", maxExtent - 1, ", found ", type);
  return success();
}

static LogicalResult verifyAxis(std::optional<Location> location, RankedTensorType type, int64_t dim) {
  int64_t first = skippedAxes(type);
  if (dim < first || dim >= type.getRank())
    return emitOptionalError(location, "expected an axis from ", first, " to ", type.getRank() - 1, " of ", type,
                             ", found ", dim);
  return success();
}

static SmallVector<IteratorType> parallelLoops(RankedTensorType type) {
  return SmallVector<IteratorType>(type.getRank(), IteratorType::parallel);
}

SmallVector<int64_t> mlir::mt::stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}
ArrayRef<int64_t> mlir::mt::sampleShape(Type type) {
  return cast<RankedTensorType>(type).getShape().drop_front(isSplit(type));
}

// A box of all elements of an operand that has the axes of the result.
static Move wholeOf(Value operand) {
  Move move{operand};
  ArrayRef<int64_t> shape = sampleShape(operand.getType());
  for (auto [size, stride] : llvm::zip_equal(shape, stridesOf(shape)))
    move.axes.push_back({size, stride});
  return move;
}

static bool areAll(ArrayRef<int64_t> values, int64_t value) {
  return llvm::all_of(values, [&](int64_t each) { return each == value; });
}

static SmallVector<int64_t> shifted(ArrayRef<int64_t> dims, int64_t by) {
  SmallVector<int64_t> result;
  for (int64_t dim : dims)
    result.push_back(dim - by);
  return result;
}

// Along one axis, element i of one side is element first + i * step of the other side.
using Step = std::pair<int64_t, int64_t>;

static AffineMap mapOf(MLIRContext *context, RankedTensorType type, llvm::function_ref<Step(int64_t)> step) {
  SmallVector<AffineExpr> axes;
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    auto [first, by] = axis < skippedAxes(type) ? Step(0, 1) : step(axis - skippedAxes(type));
    axes.push_back(getAffineDimExpr(axis, context) * by + first);
  }
  return AffineMap::get(type.getRank(), 0, axes, context);
}

// Calls use(offset of the index, offset of the mapped index in the shape `there`) for each index of the loops.
static void forEachMove(ArrayRef<int64_t> loops, AffineMap map, ArrayRef<int64_t> there,
                        llvm::function_ref<void(int64_t, int64_t)> use) {
  int64_t here = 0;
  for (Index index(loops); !index.done(); index.next()) {
    SmallVector<int64_t> at;
    for (size_t axis = 0; axis < loops.size(); ++axis)
      at.push_back(index[axis]);
    int64_t offset = 0;
    for (auto [axis, coordinate] : llvm::enumerate(map.compose(at)))
      offset = offset * there[axis] + coordinate;
    use(here++, offset);
  }
}

// ---- pad: loops over the operand

static int64_t at(ArrayRef<int64_t> list, size_t i, int64_t otherwise) { return list.empty() ? otherwise : list[i]; }

LogicalResult PadOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor given,
                                      SmallVectorImpl<Type> &types) {
  Adaptor adaptor = withDefaults<PadOp>(context, given);
  RankedTensorType from = tensorOf(adaptor.getOperand());
  if (failed(verifyList(location, "low", from, adaptor.getLow(), 0)) ||
      failed(verifyList(location, "high", from, adaptor.getHigh(), 0)) ||
      failed(verifyList(location, "interior", from, adaptor.getInterior(), 0, /*mayBeEmpty=*/true)))
    return failure();
  double value = adaptor.getValue().convertToDouble();
  if (from.getElementType().isInteger() && !(std::fabs(value) < 0x1p31 && value == std::trunc(value)))
    return emitOptionalError(location, "expected a whole number as value of ", from, ", found ", value);
  SmallVector<int64_t> shape(from.getShape());
  for (size_t i = 0; i < adaptor.getLow().size(); ++i) {
    int64_t &size = shape[i + skippedAxes(from)];
    size +=
        adaptor.getLow()[i] + adaptor.getHigh()[i] + std::max<int64_t>(size - 1, 0) * at(adaptor.getInterior(), i, 0);
  }
  types.push_back(from.clone(shape));
  return success();
}
int64_t PadOp::getFlops() { return 0; }
SmallVector<IteratorType> PadOp::getLoopIteratorTypes() { return parallelLoops(tensorOf(getOperand())); }
SmallVector<shard::ReductionKind> PadOp::getReductionLoopIteratorKinds() { return {}; }
SmallVector<AffineMap> PadOp::getIndexingMaps() {
  RankedTensorType from = tensorOf(getOperand());
  AffineMap to = mapOf(getContext(), from, [&](int64_t i) { return Step(getLow()[i], at(getInterior(), i, 0) + 1); });
  return {AffineMap::getMultiDimIdentityMap(from.getRank(), getContext()), to};
}
LogicalResult PadOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                               SmallVectorImpl<Tensor> &results) {
  Tensor result(concreteShape(getType(), context.rows), getValue().convertToDouble());
  forEachMove(operands[0].shape, getIndexingMaps()[1], result.shape,
              [&](int64_t from, int64_t to) { result.data[to] = operands[0].data[from]; });
  results.push_back(std::move(result));
  return success();
}
void PadOp::buildGradient(OpBuilder &builder, ValueRange resultGradients, SmallVectorImpl<Value> &operandGradients) {
  RankedTensorType from = tensorOf(getOperand());
  SmallVector<int64_t> strides;
  for (int64_t interior : getInterior())
    strides.push_back(interior + 1);
  Value dy = resultGradients[0];
  operandGradients.push_back(
      dy ? SliceOp::create(builder, getLoc(), dy, getLow(), from.getShape().drop_front(skippedAxes(from)), strides)
               .getResult()
         : Value());
}

SmallVector<Move> PadOp::getMoves() {
  Move move = wholeOf(getOperand());
  for (auto [i, axis] : llvm::enumerate(move.axes)) {
    axis.first = getLow()[i];
    axis.step = at(getInterior(), i, 0) + 1;
  }
  return {move};
}
APFloat PadOp::getFill() { return getValue(); }
bool PadOp::keepsFirstAxes(int64_t axes) {
  return areAll(getLow().take_front(axes), 0) && areAll(getHigh().take_front(axes), 0) &&
         (getInterior().empty() || areAll(getInterior().take_front(axes), 0));
}
void PadOp::dropFirstAxes(int64_t axes) {
  setLow(getLow().drop_front(axes));
  setHigh(getHigh().drop_front(axes));
  if (!getInterior().empty())
    setInterior(getInterior().drop_front(axes));
}

// ---- slice: loops over the result

LogicalResult SliceOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor given,
                                        SmallVectorImpl<Type> &types) {
  Adaptor adaptor = withDefaults<SliceOp>(context, given);
  RankedTensorType from = tensorOf(adaptor.getOperand());
  if (failed(verifyList(location, "starts", from, adaptor.getStarts(), 0)) ||
      failed(verifyList(location, "sizes", from, adaptor.getSizes(), 1)) ||
      failed(verifyList(location, "strides", from, adaptor.getStrides(), 1, /*mayBeEmpty=*/true)))
    return failure();
  SmallVector<int64_t> shape(from.getShape());
  for (size_t i = 0; i < adaptor.getSizes().size(); ++i) {
    int64_t &size = shape[i + skippedAxes(from)];
    int64_t last = adaptor.getStarts()[i] + (adaptor.getSizes()[i] - 1) * at(adaptor.getStrides(), i, 1);
    if (last >= size)
      return emitOptionalError(location, "expected a last element from 0 to ", size - 1, " on axis ",
                               i + skippedAxes(from), ", found ", last);
    size = adaptor.getSizes()[i];
  }
  types.push_back(from.clone(shape));
  return success();
}
int64_t SliceOp::getFlops() { return 0; }
SmallVector<IteratorType> SliceOp::getLoopIteratorTypes() { return parallelLoops(getType()); }
SmallVector<shard::ReductionKind> SliceOp::getReductionLoopIteratorKinds() { return {}; }
SmallVector<AffineMap> SliceOp::getIndexingMaps() {
  AffineMap from =
      mapOf(getContext(), getType(), [&](int64_t i) { return Step(getStarts()[i], at(getStrides(), i, 1)); });
  return {from, AffineMap::getMultiDimIdentityMap(getType().getRank(), getContext())};
}
LogicalResult SliceOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                 SmallVectorImpl<Tensor> &results) {
  Tensor result(concreteShape(getType(), context.rows));
  forEachMove(result.shape, getIndexingMaps()[0], operands[0].shape,
              [&](int64_t to, int64_t from) { result.data[to] = operands[0].data[from]; });
  results.push_back(std::move(result));
  return success();
}
void SliceOp::buildGradient(OpBuilder &builder, ValueRange resultGradients, SmallVectorImpl<Value> &operandGradients) {
  Value dy = resultGradients[0];
  RankedTensorType from = tensorOf(getOperand());
  if (!dy || !isReal(from.getElementType())) {
    operandGradients.push_back({});
    return;
  }
  SmallVector<int64_t> high, interior;
  for (size_t i = 0; i < getSizes().size(); ++i) {
    int64_t stride = at(getStrides(), i, 1);
    high.push_back(from.getDimSize(i + skippedAxes(from)) - 1 - getStarts()[i] - (getSizes()[i] - 1) * stride);
    if (!getStrides().empty())
      interior.push_back(stride - 1);
  }
  operandGradients.push_back(PadOp::create(builder, getLoc(), dy, getStarts(), high, interior, APFloat(0.0f)));
}

SmallVector<Move> SliceOp::getMoves() {
  Move move = wholeOf(getOperand());
  for (auto [i, axis] : llvm::enumerate(move.axes)) {
    move.start += getStarts()[i] * axis.stride;
    axis.size = getSizes()[i];
    axis.stride *= at(getStrides(), i, 1);
  }
  return {move};
}
bool SliceOp::keepsFirstAxes(int64_t axes) {
  return areAll(getStarts().take_front(axes), 0) &&
         (getStrides().empty() || areAll(getStrides().take_front(axes), 1)) &&
         sampleShape(getType()).take_front(axes) == sampleShape(getOperand().getType()).take_front(axes);
}
void SliceOp::dropFirstAxes(int64_t axes) {
  setStarts(getStarts().drop_front(axes));
  setSizes(getSizes().drop_front(axes));
  if (!getStrides().empty())
    setStrides(getStrides().drop_front(axes));
}

// ---- concat: loops over the result

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  if (adaptor.getOperands().empty())
    return emitOptionalError(location, "expected one operand or more, found none");
  RankedTensorType first = tensorOf(adaptor.getOperands()[0]);
  int64_t dim = adaptor.getDim();
  if (failed(verifyAxis(location, first, dim)))
    return failure();
  SmallVector<int64_t> shape(first.getShape());
  shape[dim] = 0;
  for (Value operand : adaptor.getOperands()) {
    RankedTensorType type = tensorOf(operand);
    SmallVector<int64_t> like(first.getShape());
    if (type.getRank() == first.getRank() && isSplit(type) == isSplit(first))
      like[dim] = type.getDimSize(dim);
    if (type != first.clone(like))
      return emitOptionalError(location, "expected operands that agree but on axis ", dim, ", found ", first, " and ",
                               type);
    int64_t size = type.getDimSize(dim);
    if (ShapedType::isDynamic(size) || size >= maxExtent || (shape[dim] += size) >= maxExtent)
      return emitOptionalError(location, "expected a size up to ", maxExtent - 1, " on axis ", dim, ", found more");
  }
  types.push_back(first.clone(shape));
  return success();
}
int64_t ConcatOp::getFlops() { return 0; }
SmallVector<IteratorType> ConcatOp::getLoopIteratorTypes() { return parallelLoops(getType()); }
SmallVector<shard::ReductionKind> ConcatOp::getReductionLoopIteratorKinds() { return {}; }
SmallVector<AffineMap> ConcatOp::getIndexingMaps() {
  AffineMap identity = AffineMap::getMultiDimIdentityMap(getType().getRank(), getContext());
  SmallVector<AffineMap> all;
  int64_t dim = getDim(), before = 0;
  for (Value operand : getOperands()) {
    SmallVector<AffineExpr> axes(identity.getResults());
    axes[dim] = axes[dim] - before;
    all.push_back(AffineMap::get(getType().getRank(), 0, axes, getContext()));
    before += tensorOf(operand).getDimSize(dim);
  }
  all.push_back(identity);
  return all;
}
LogicalResult ConcatOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                  SmallVectorImpl<Tensor> &results) {
  Tensor result(concreteShape(getType(), context.rows));
  int64_t dim = getDim(), before = 0;
  for (const Tensor &operand : operands) {
    int64_t inner = 1;
    for (int64_t axis = dim; axis < operand.rank(); ++axis)
      inner *= operand.shape[axis];
    int64_t step = inner / std::max<int64_t>(operand.shape[dim], 1) * result.shape[dim];
    for (int64_t i = 0; i < operand.size(); ++i)
      result.data[i / inner * step + before + i % inner] = operand.data[i];
    before += inner;
  }
  results.push_back(std::move(result));
  return success();
}
void ConcatOp::buildGradient(OpBuilder &builder, ValueRange resultGradients, SmallVectorImpl<Value> &operandGradients) {
  Value dy = resultGradients[0];
  int64_t dim = getDim(), before = 0;
  for (Value operand : getOperands()) {
    RankedTensorType type = tensorOf(operand);
    SmallVector<int64_t> starts(type.getRank() - skippedAxes(type), 0);
    starts[dim - skippedAxes(type)] = before;
    before += type.getDimSize(dim);
    operandGradients.push_back(
        dy && isReal(type.getElementType())
            ? SliceOp::create(builder, getLoc(), dy, starts, type.getShape().drop_front(skippedAxes(type))).getResult()
            : Value());
  }
}

SmallVector<Move> ConcatOp::getMoves() {
  SmallVector<Move> moves;
  int64_t dim = getDim() - skippedAxes(getType()), before = 0;
  for (Value operand : getOperands()) {
    moves.push_back(wholeOf(operand));
    moves.back().axes[dim].first = before;
    before += moves.back().axes[dim].size;
  }
  return moves;
}
bool ConcatOp::keepsFirstAxes(int64_t axes) { return static_cast<int64_t>(getDim()) > axes; }
void ConcatOp::dropFirstAxes(int64_t axes) { setDim(getDim() - axes); }

// ---- reverse: loops over the result

LogicalResult ReverseOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  RankedTensorType type = tensorOf(adaptor.getOperand());
  for (auto [i, dim] : llvm::enumerate(adaptor.getDims())) {
    if (failed(verifyAxis(location, type, dim)))
      return failure();
    if (i > 0 && dim <= adaptor.getDims()[i - 1])
      return emitOptionalError(location, "expected axes in increasing order, found ", dim, " after ",
                               adaptor.getDims()[i - 1]);
  }
  types.push_back(type);
  return success();
}
int64_t ReverseOp::getFlops() { return 0; }
SmallVector<IteratorType> ReverseOp::getLoopIteratorTypes() { return parallelLoops(getType()); }
SmallVector<shard::ReductionKind> ReverseOp::getReductionLoopIteratorKinds() { return {}; }
SmallVector<AffineMap> ReverseOp::getIndexingMaps() {
  RankedTensorType type = getType();
  AffineMap from = mapOf(getContext(), type, [&](int64_t i) {
    int64_t axis = i + skippedAxes(type);
    return llvm::is_contained(getDims(), axis) ? Step(type.getDimSize(axis) - 1, -1) : Step(0, 1);
  });
  return {from, AffineMap::getMultiDimIdentityMap(type.getRank(), getContext())};
}
LogicalResult ReverseOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                   SmallVectorImpl<Tensor> &results) {
  Tensor result(operands[0].shape);
  forEachMove(result.shape, getIndexingMaps()[0], operands[0].shape,
              [&](int64_t to, int64_t from) { result.data[to] = operands[0].data[from]; });
  results.push_back(std::move(result));
  return success();
}
void ReverseOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                              SmallVectorImpl<Value> &operandGradients) {
  Value dy = resultGradients[0];
  bool differentiable = dy && isReal(tensorOf(getOperand()).getElementType());
  operandGradients.push_back(differentiable ? ReverseOp::create(builder, getLoc(), dy, getDims()).getResult()
                                            : Value());
}
SmallVector<Move> ReverseOp::getMoves() {
  Move move = wholeOf(getOperand());
  for (int64_t dim : getDims()) {
    MoveAxis &axis = move.axes[dim - skippedAxes(getType())];
    move.start += (axis.size - 1) * axis.stride;
    axis.stride = -axis.stride;
  }
  return {move};
}
bool ReverseOp::keepsFirstAxes(int64_t axes) {
  return llvm::all_of(getDims(), [&](int64_t dim) { return dim > axes; });
}
void ReverseOp::dropFirstAxes(int64_t axes) { setDims(shifted(getDims(), axes)); }
