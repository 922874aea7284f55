// SPDX-License-Identifier: Apache-2.0
//
// Attention as products and a softmax, and the gradients of mt.attention_gradient, which are made of that.
#include "dialects/mt/Attention.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Expr.h"
#include "dialects/mt/Gradient.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Types.h"

using namespace mlir;
using namespace mlir::mt;

namespace {

// The formula of an AttentionOp or of what an AttentionGradientOp is the gradient of.
template <typename Op> class Formula {
public:
  struct Inputs {
    Value query, key, value;
  };
  Formula(OpBuilder &builder, Op op) : builder(builder), op(op), form(op) {}

  Value build(const Inputs &inputs, RankedTensorType type) {
    Expr query = expr(split(inputs.query, form.heads, form.keySize)) * form.scale;
    Value keys = repeated(split(inputs.key, form.keyHeads, form.keySize)),
          values = repeated(split(inputs.value, form.keyHeads, form.valueSize));
    Value scores = product(query.value(), keys, true);
    Value p = softmax(scores);
    if (op.getRate() && op.getRate()->convertToDouble() > 0)
      p = DropoutOp::create(builder, op.getLoc(), p.getType(), p, op.getStep(), op.getStreamAttr(), op.getRateAttr(),
                            builder.getDenseI64ArrayAttr({}));
    return reshape(exchanged(product(p, values, false)), type);
  }

private:
  OpBuilder &builder;
  Op op;
  Attention form;

  Value product(Value a, Value b, bool transposed) {
    auto product = MatmulOp::create(builder, op.getLoc(), a, b, false, transposed);
    if (StringAttr precision = precisionOf(op))
      setPrecision(product, precision);
    return product;
  }
  Expr expr(Value value) { return Expr(builder, op.getLoc(), value); }
  Value reshape(Value value, RankedTensorType type) {
    return value.getType() == type ? value : ReshapeOp::create(builder, op.getLoc(), type, value).getResult();
  }
  // Swaps the axes of positions and heads.
  Value exchanged(Value value) {
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, tensorOf(value).getRank()));
    std::swap(order[order.size() - 2], order[order.size() - 3]);
    return TransposeOp::create(builder, op.getLoc(), value, order);
  }
  // Reshapes [?, ..., positions, heads * size] to [?, ..., heads, positions, size].
  Value split(Value value, int64_t heads, int64_t size) {
    SmallVector<int64_t> shape(tensorOf(value).getShape().drop_back());
    llvm::append_range(shape, ArrayRef<int64_t>{heads, size});
    return exchanged(reshape(value, tensorOf(value).clone(shape)));
  }
  // Repeats each head of keys or values for all heads of the queries that read it.
  Value repeated(Value value) {
    if (form.heads == form.keyHeads)
      return value;
    RankedTensorType type = tensorOf(value);
    SmallVector<int64_t> each(type.getShape()), all(type.getShape());
    each.insert(each.end() - 2, 1);
    SmallVector<int64_t> more(each);
    more[more.size() - 3] = form.heads / form.keyHeads;
    all[all.size() - 3] = form.heads;
    Value one = reshape(value, type.clone(each));
    return reshape(BroadcastOp::create(builder, op.getLoc(), type.clone(more), one), type.clone(all));
  }

  // Mask [T, S] of causality and window; null if every key is visible.
  Value placeMask() {
    if (!form.causal && !form.window)
      return {};
    SmallVector<bool> seen;
    for (int64_t t = 0; t < form.queries; ++t)
      for (int64_t s = 0; s < form.keys; ++s)
        seen.push_back(s >= form.firstKey(t) && s < form.endKey(t));
    auto type = RankedTensorType::get({form.queries, form.keys}, builder.getI1Type());
    return ConstantOp::create(builder, op.getLoc(), DenseElementsAttr::get(type, ArrayRef<bool>(seen)));
  }
  bool hidesAllFromOne() {
    for (int64_t t = 0; t < form.queries; ++t)
      if (form.firstKey(t) >= form.endKey(t))
        return true;
    return false;
  }
  Value softmax(Value scores) {
    constexpr double hidden = -1e9;
    Value mask = placeMask();
    if (Value maskOperand = op.getMask())
      mask = mask ? AndOp::create(builder, op.getLoc(), maskOperand, mask).getResult() : maskOperand;
    if (!mask)
      return SoftmaxOp::create(builder, op.getLoc(), scores.getType(), scores);
    Value shown = select(expr(mask), expr(scores), hidden).value();
    Value p = SoftmaxOp::create(builder, op.getLoc(), scores.getType(), shown);
    return op.getMask() || hidesAllFromOne() ? select(expr(mask), expr(p), 0.0).value() : p;
  }
};
} // namespace

Value mlir::mt::decomposeAttention(OpBuilder &builder, AttentionOp op) {
  return Formula(builder, op).build({op.getQuery(), op.getKey(), op.getValue()}, op.getType());
}

static SmallVector<Operation *> opsAfter(Operation *op) {
  SmallVector<Operation *> ops;
  while ((op = op->getNextNode()))
    ops.push_back(op);
  return ops;
}

// The gradient is built again from the formula, and differentiated. Y and the logarithms of the sums are functions of
// the queries, keys and values, so all gradients pass through these.
void AttentionGradientOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                        SmallVectorImpl<Value> &operandGradients) {
  if (!resultGradients[0])
    return operandGradients.append(getNumOperands(), {});
  Block *block = builder.getInsertionBlock();
  // Queries, keys and values may be one value. Each has its own gradient, so each gets a value of its own.
  auto own = [&](Value value) -> Value { return ReshapeOp::create(builder, getLoc(), value.getType(), value); };
  Formula<AttentionGradientOp>::Inputs inputs = {own(getQuery()), own(getKey()), own(getValue())};
  Value dy = own(getGradient());
  Operation *begin = &block->back();
  Value y = Formula(builder, *this).build(inputs, tensorOf(getOutput()));
  DenseSet<Value> active = {inputs.query, inputs.key, inputs.value};
  SmallVector<Operation *> formula = opsAfter(begin);
  addDependents(formula, active);
  DenseMap<Value, Value> gradients = {{y, dy}};
  if (failed(backpropagate(builder, formula, active, gradients)))
    return;
  Value first = gradients.lookup(getOf() == AttentionOperand::query ? inputs.query
                                 : getOf() == AttentionOperand::key ? inputs.key
                                                                    : inputs.value);
  active = {inputs.query, inputs.key, inputs.value, dy};
  SmallVector<Operation *> all = opsAfter(begin);
  addDependents(all, active);
  gradients = {{first, resultGradients[0]}};
  if (failed(backpropagate(builder, all, active, gradients)))
    return;
  for (Value operand : {dy, inputs.query, inputs.key, inputs.value})
    operandGradients.push_back(gradients.lookup(operand));
  operandGradients.append(getNumOperands() - 4, {});
}
