// SPDX-License-Identifier: Apache-2.0
//
// Attention: sizes, types, costs, sharding loops, gradient.
#include "dialects/mt/Attention.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Types.h"

using namespace mlir;
using namespace mlir::mt;
using utils::IteratorType;

// ---- sizes

template <typename Op> static void readForm(Op op, Attention &form) {
  RankedTensorType query = tensorOf(op.getQuery()), key = tensorOf(op.getKey());
  int64_t rank = query.getRank();
  for (int64_t size : query.getShape().slice(1, rank - 3))
    form.groups *= size;
  form.queries = query.getDimSize(rank - 2);
  form.keys = key.getDimSize(rank - 2);
  form.heads = op.getHeads();
  form.keyHeads = op.getKeyHeads().value_or(form.heads);
  form.keySize = query.getDimSize(rank - 1) / form.heads;
  form.causal = op.getCausal();
  form.window = op.getWindow().value_or(0);
  if (op.getScale())
    form.scale = op.getScale()->convertToDouble();
  else if (query.getElementType().isF64())
    form.scale = 1 / std::sqrt(static_cast<double>(form.keySize));
  else
    form.scale = 1 / std::sqrt(static_cast<float>(form.keySize));
  if (op.getMask())
    form.mask = tensorOf(op.getMask());
}

mt::Attention::Attention(Operation *op) {
  auto ofValue = [&](Value value) { valueSize = tensorOf(value).getShape().back() / keyHeads; };
  if (auto attention = dyn_cast<AttentionOp>(op)) {
    readForm(attention, *this);
    ofValue(attention.getValue());
  } else if (auto gradient = dyn_cast<AttentionGradientOp>(op)) {
    readForm(gradient, *this);
    ofValue(gradient.getValue());
  } else {
    readForm(cast<AttentionLogSumsOp>(op), *this);
  }
}

int64_t mt::Attention::pairs() const {
  int64_t count = 0;
  for (int64_t query = 0; query < queries; ++query)
    count += std::max<int64_t>(0, endKey(query) - firstKey(query));
  return count;
}

mt::Attention::MaskSteps mt::Attention::maskSteps() const {
  SmallVector<int64_t> steps;
  int64_t step = 1;
  for (int64_t size : llvm::reverse(mask.getShape())) {
    steps.push_back(size == 1 ? 0 : step);
    step *= ShapedType::isDynamic(size) ? 1 : size;
  }
  steps.resize(3); // keys, queries, heads
  int64_t matrix = 1, axes = std::min<int64_t>(mask.getRank(), 3);
  for (int64_t size : mask.getShape().take_back(axes))
    matrix *= ShapedType::isDynamic(size) ? 1 : size;
  bool split = mask.getRank() > 3 && mask.isDynamicDim(0);
  int64_t each = 1; // groups per sample
  for (int64_t size : mask.getShape().drop_back(axes).drop_front(split ? 1 : 0))
    each *= size;
  return {split ? each * matrix : 0, each == 1 ? 0 : matrix, steps[2], steps[1], steps[0]};
}

bool mt::isSameAttention(Operation *a, Operation *b) {
  Attention x(a), y(b);
  if (x.heads != y.heads || x.keyHeads != y.keyHeads || x.causal != y.causal || x.window != y.window ||
      x.scale != y.scale)
    return false;
  if (isa<AttentionGradientOp>(a) || isa<AttentionGradientOp>(b))
    return a->getName() == b->getName() && a->getOperands() == b->getOperands();
  auto maskOf = [](Operation *op) {
    auto attention = dyn_cast<AttentionOp>(op);
    return attention ? attention.getMask() : cast<AttentionLogSumsOp>(op).getMask();
  };
  return a->getOperand(0) == b->getOperand(0) && a->getOperand(1) == b->getOperand(1) && maskOf(a) == maskOf(b);
}

// ---- types

namespace {
// Common parts of the verifiers of the three ops. A null value stands for an operand that the op does not have.
struct Operands {
  std::optional<Location> location;
  RankedTensorType query, key, value, mask;
  int64_t heads, keyHeads;
  std::optional<int64_t> window;

  template <typename Adaptor>
  Operands(std::optional<Location> location, Adaptor adaptor, Value value)
      : location(location), query(tensorOf(adaptor.getQuery())), key(tensorOf(adaptor.getKey())),
        value(value ? tensorOf(value) : RankedTensorType()),
        mask(adaptor.getMask() ? tensorOf(adaptor.getMask()) : RankedTensorType()),
        heads(adaptor.getHeadsAttr() ? adaptor.getHeadsAttr().getInt() : 1),
        keyHeads(adaptor.getKeyHeads().value_or(heads)), window(adaptor.getWindow()) {}

  LogicalResult verify();
  LogicalResult verifySizes();
  LogicalResult verifyMask();
  RankedTensorType result() { return withLast(query, heads * (value.getShape().back() / keyHeads)); }
  RankedTensorType logSums() {
    SmallVector<int64_t> shape(query.getShape().drop_back(2));
    shape.push_back(heads);
    shape.push_back(query.getDimSize(query.getRank() - 2));
    return RankedTensorType::get(shape, computedType(query.getElementType()));
  }
  static RankedTensorType withLast(RankedTensorType type, int64_t size) {
    SmallVector<int64_t> shape(type.getShape());
    shape.back() = size;
    return type.clone(shape);
  }
};
} // namespace

LogicalResult Operands::verifySizes() {
  int64_t rank = query.getRank();
  if (rank < 3)
    return emitOptionalError(location, "expected queries of 3 axes or more, found ", query);
  for (RankedTensorType type : {query, key, value}) {
    if (!type)
      continue;
    if (type.getRank() != rank || type.getShape().drop_back(2) != query.getShape().drop_back(2))
      return emitOptionalError(location, "expected equal axes before the positions, found ", query, " and ", type);
    for (int64_t size : type.getShape().take_back(2))
      if (size < 1)
        return emitOptionalError(location, "expected known numbers of positions and channels, found ", type);
  }
  for (RankedTensorType type : {key, value})
    if (type && type.getElementType() != query.getElementType())
      return emitOptionalError(location, "expected one element type, found ", query, " and ", type);
  if (value && value.getDimSize(rank - 2) != key.getDimSize(rank - 2))
    return emitOptionalError(location, "expected as many values as keys, found ", key, " and ", value);
  return success();
}

LogicalResult Operands::verify() {
  if (failed(verifySizes()))
    return failure();
  if (heads < 1 || keyHeads < 1 || heads % keyHeads != 0)
    return emitOptionalError(location, "expected heads that are a multiple of the key_heads, found ", heads, " and ",
                             keyHeads);
  if (query.getShape().back() % heads != 0 || key.getShape().back() != query.getShape().back() / heads * keyHeads)
    return emitOptionalError(location, "expected keys with the channels of the queries for each head, found ", heads,
                             " heads of ", query, " and ", keyHeads, " of ", key);
  if (value && value.getShape().back() % keyHeads != 0)
    return emitOptionalError(location, "expected values of ", keyHeads, " heads, found ", value);
  if (window && *window < 1)
    return emitOptionalError(location, "expected a window of 1 or more, found ", *window);
  return mask ? verifyMask() : success();
}

// The mask is aligned at its last axis with [axes of the queries but the last two, heads, queries, keys].
LogicalResult Operands::verifyMask() {
  SmallVector<int64_t> full(query.getShape().drop_back(2));
  llvm::append_range(full, ArrayRef<int64_t>{heads, query.getShape().take_back(2)[0], key.getShape().take_back(2)[0]});
  int64_t missing = static_cast<int64_t>(full.size()) - mask.getRank();
  bool fits = missing >= 0, repeated = false, there = false;
  for (int64_t axis = 0; fits && axis < mask.getRank(); ++axis) {
    int64_t size = mask.getDimSize(axis), wanted = full[axis + missing];
    fits = size == wanted || size == 1;
    bool ofGroups = axis + missing > 0 && axis + missing < static_cast<int64_t>(full.size()) - 3;
    repeated |= ofGroups && size != wanted;
    there |= ofGroups && size != 1;
  }
  if (fits && !(there && (repeated || missing > 1)))
    return success();
  return emitOptionalError(location, "expected a mask that broadcasts to [", full, "], found ", mask);
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  Operands operands(location, adaptor, adaptor.getValue());
  if (failed(operands.verify()))
    return failure();
  if (adaptor.getStep() && !(adaptor.getRate() && (adaptor.getStream() || adaptor.getHash())))
    return emitOptionalError(location, "expected a stream and a rate of dropout with its step, found none");
  if (std::optional<llvm::APFloat> rate = adaptor.getRate())
    if (double number = rate->convertToDouble(); !(number >= 0 && number < 1))
      return emitOptionalError(location, "expected a rate from 0 to less than 1, found ", number);
  types.push_back(operands.result());
  return success();
}
LogicalResult AttentionLogSumsOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                                   SmallVectorImpl<Type> &types) {
  Operands operands(location, adaptor, {});
  if (failed(operands.verify()))
    return failure();
  types.push_back(operands.logSums());
  return success();
}
LogicalResult AttentionGradientOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                                    SmallVectorImpl<Type> &types) {
  Operands operands(location, adaptor, adaptor.getValue());
  if (failed(operands.verify()))
    return failure();
  for (auto [given, expected] :
       {std::pair(adaptor.getGradient(), operands.result()), std::pair(adaptor.getOutput(), operands.result()),
        std::pair(adaptor.getLogSums(), operands.logSums())})
    if (given.getType() != expected)
      return emitOptionalError(location, "expected ", expected, ", found ", given.getType());
  types.push_back(adaptor.getOf() == AttentionOperand::query ? operands.query
                  : adaptor.getOf() == AttentionOperand::key ? operands.key
                                                             : operands.value);
  return success();
}

// ---- costs, loops

static int64_t scoresOf(Operation *op) {
  mt::Attention form(op);
  return form.groups * form.heads * form.pairs();
}
static constexpr int64_t softmaxFlops = 30; // per score

int64_t AttentionOp::getFlops() {
  mt::Attention form(*this);
  return scoresOf(*this) * (2 * form.keySize + 2 * form.valueSize + softmaxFlops);
}
// The FLOPs that are not part of the mt.attention in the same kernel.
int64_t AttentionLogSumsOp::getFlops() { return 16 * elementsPerRow(getType()); }
// The gradients share a kernel: the scores are counted for the queries' gradient, and the products that keys and values
// share for the keys' gradient.
int64_t AttentionGradientOp::getFlops() {
  mt::Attention form(*this);
  switch (getOf()) {
  case AttentionOperand::query:
    return scoresOf(*this) * (4 * form.keySize + softmaxFlops);
  case AttentionOperand::key:
    return scoresOf(*this) * (2 * form.keySize + 2 * form.valueSize);
  case AttentionOperand::value:
    return scoresOf(*this) * 2 * form.valueSize;
  }
  llvm_unreachable("all operands are listed");
}

// Parallel loops over the axes before the positions. The op does not access the other axes in order.
static SmallVector<IteratorType> loopsOf(Value query) {
  return SmallVector<IteratorType>(tensorOf(query).getRank() - 2, IteratorType::parallel);
}
static SmallVector<AffineMap> mapsOf(Operation *op, Value query, Value mask) {
  MLIRContext *context = op->getContext();
  int64_t loops = tensorOf(query).getRank() - 2;
  AffineExpr zero = getAffineConstantExpr(0, context);
  auto mapOf = [&](Value value) {
    RankedTensorType type = tensorOf(value);
    int64_t missing = value == mask ? loops + 3 - type.getRank() : 0;
    SmallVector<AffineExpr> axes;
    for (int64_t axis = 0; axis < type.getRank(); ++axis)
      axes.push_back(axis + missing < loops && type.getDimSize(axis) != 1 ? getAffineDimExpr(axis + missing, context)
                                                                          : zero);
    return AffineMap::get(loops, 0, axes, context);
  };
  SmallVector<AffineMap> maps;
  for (Value operand : op->getOperands())
    maps.push_back(mapOf(operand));
  maps.push_back(mapOf(op->getResult(0)));
  return maps;
}
#define MT_ATTENTION(OP)                                                                                               \
  SmallVector<IteratorType> OP::getLoopIteratorTypes() { return loopsOf(getQuery()); }                                 \
  SmallVector<shard::ReductionKind> OP::getReductionLoopIteratorKinds() { return {}; }                                 \
  SmallVector<AffineMap> OP::getIndexingMaps() { return mapsOf(*this, getQuery(), getMask()); }
MT_ATTENTION(AttentionOp)
MT_ATTENTION(AttentionLogSumsOp)
MT_ATTENTION(AttentionGradientOp)
#undef MT_ATTENTION

// ---- gradient

void AttentionOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                SmallVectorImpl<Value> &operandGradients) {
  Value dy = resultGradients[0];
  if (!dy)
    return operandGradients.append(getNumOperands(), {});
  Value logSums = AttentionLogSumsOp::create(builder, getLoc(), getQuery(), getKey(), getMask(), getHeadsAttr(),
                                             getKeyHeadsAttr(), getCausalAttr(), getWindowAttr(), getScaleAttr());
  for (AttentionOperand of : {AttentionOperand::query, AttentionOperand::key, AttentionOperand::value})
    operandGradients.push_back(AttentionGradientOp::create(
        builder, getLoc(), AttentionOperandAttr::get(getContext(), of), dy, getQuery(), getKey(), getValue(),
        getResult(), logSums, getMask(), getHash(), getStep(), getHeadsAttr(), getKeyHeadsAttr(), getCausalAttr(),
        getWindowAttr(), getScaleAttr(), getStreamAttr(), getRateAttr()));
  operandGradients.append(getNumOperands() - 3, {});
}

void AttentionOp::beginTraining(OpBuilder &, Value iteration, SmallVectorImpl<std::pair<unsigned, Value>> &) {
  if (getRate() && getRate()->convertToDouble() > 0)
    getStepMutable().assign(iteration);
}
