// SPDX-License-Identifier: Apache-2.0
//
// mt-decompose-attention: replaces an mt.attention that has no kernel by products and a softmax: an attention without a
// batch axis and, in plans with code for GPUs, an attention whose heads have more channels than the registers of a
// block hold.
#include "compiler/Passes.h"
#include "dialects/mt/Attention.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Expr.h"
#include "dialects/mt/Types.h"

using namespace mlir;
using mlir::mt::Expr;

namespace mtc {
#define GEN_PASS_DEF_DECOMPOSEATTENTION
#include "compiler/Passes.h.inc"

namespace {

using mt::tensorOf;

class Decomposition {
public:
  explicit Decomposition(mt::AttentionOp op) : op(op), form(op), builder(op) {}

  Value build() {
    Expr query = expr(split(op.getQuery(), form.heads, form.keySize)) * form.scale;
    Value keys = repeated(split(op.getKey(), form.keyHeads, form.keySize)),
          values = repeated(split(op.getValue(), form.keyHeads, form.valueSize));
    Value scores = product(query.value(), keys, true);
    Value p = softmax(scores);
    if (op.getRate() && op.getRate()->convertToFloat() > 0)
      p = mt::DropoutOp::create(builder, op.getLoc(), p.getType(), p, Value(), op.getStreamAttr(), op.getRateAttr(),
                                builder.getDenseI64ArrayAttr({}));
    return reshape(exchanged(product(p, values, false)), op.getType());
  }

private:
  mt::AttentionOp op;
  mt::Attention form;
  OpBuilder builder;

  Value product(Value a, Value b, bool transposed) {
    auto product = mt::MatmulOp::create(builder, op.getLoc(), a, b, false, transposed);
    if (StringAttr precision = mt::precisionOf(op))
      mt::setPrecision(product, precision);
    return product;
  }
  Expr expr(Value value) { return Expr(builder, op.getLoc(), value); }
  Value reshape(Value value, RankedTensorType type) {
    return value.getType() == type ? value : mt::ReshapeOp::create(builder, op.getLoc(), type, value).getResult();
  }
  // Swaps the axes of positions and heads.
  Value exchanged(Value value) {
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, tensorOf(value).getRank()));
    std::swap(order[order.size() - 2], order[order.size() - 3]);
    return mt::TransposeOp::create(builder, op.getLoc(), value, order);
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
    return reshape(mt::BroadcastOp::create(builder, op.getLoc(), type.clone(more), one), type.clone(all));
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
    return mt::ConstantOp::create(builder, op.getLoc(), DenseElementsAttr::get(type, ArrayRef<bool>(seen)));
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
      mask = mask ? mt::AndOp::create(builder, op.getLoc(), maskOperand, mask).getResult() : maskOperand;
    if (!mask)
      return mt::SoftmaxOp::create(builder, op.getLoc(), scores.getType(), scores);
    Value shown = select(expr(mask), expr(scores), hidden).value();
    Value p = mt::SoftmaxOp::create(builder, op.getLoc(), scores.getType(), shown);
    return op.getMask() || hidesAllFromOne() ? select(expr(mask), expr(p), 0.0).value() : p;
  }
};

struct DecomposeAttention : impl::DecomposeAttentionBase<DecomposeAttention> {
  using DecomposeAttentionBase::DecomposeAttentionBase;

  void runOnOperation() override {
    getOperation()->walk([&](mt::AttentionOp op) {
      mt::Attention form(op);
      bool fits = maxChannels == 0 || std::max(form.keySize, form.valueSize) <= maxChannels;
      if (!all && fits && mt::isSplit(op.getType()))
        return;
      Value result = Decomposition(op).build();
      op.replaceAllUsesWith(result);
      op.erase();
    });
  }
};

} // namespace
} // namespace mtc
