// SPDX-License-Identifier: Apache-2.0
//
// mt-recognize-attention: mt.attention in place of a product of queries and keys, a softmax, and a product with values.
// A mask is recognized by its values where they are constant: it hides nothing, what comes after each query, or any
// other keys, but not all keys of a query, whose shares would be equal. Masks that the data brings stay as they are,
// since a formula does not say what becomes of a query that sees no key.
#include "compiler/Passes.h"
#include "compiler/recognize/Match.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Types.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_RECOGNIZEATTENTION
#include "compiler/Passes.h.inc"

namespace {

using mt::tensorOf;

constexpr int64_t withHeads = 4; // axes of [?, heads, places, channels]; without heads there are 3

// A value that a number multiplies, through transposes and reshapes.
struct Scaled {
  Value value;
  double scale = 1;
};
Scaled scaledBy(OpBuilder &builder, Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<mt::MulOp, mt::DivOp>(op)) {
    std::optional<double> right = numberOf(op->getOperand(1)),
                          left = isa<mt::MulOp>(op) ? numberOf(op->getOperand(0)) : std::nullopt;
    if (!right && !left)
      return {value};
    Scaled inner = scaledBy(builder, op->getOperand(right ? 0 : 1));
    if (inner.value.getType() != value.getType())
      return {value};
    inner.scale *= right && isa<mt::DivOp>(op) ? 1 / *right : right ? *right : *left;
    return inner;
  }
  if (!isa_and_nonnull<mt::TransposeOp, mt::ReshapeOp>(op))
    return {value};
  Scaled inner = scaledBy(builder, op->getOperand(0));
  if (inner.value == op->getOperand(0))
    return {value};
  if (auto transpose = dyn_cast<mt::TransposeOp>(op))
    return {transposed(builder, op->getLoc(), inner.value, transpose.getPermutation()), inner.scale};
  return {reshaped(builder, op->getLoc(), inner.value, tensorOf(value).getShape()), inner.scale};
}

// Which keys each query sees: row major, [queries, keys]. Empty: all.
struct Visible {
  int64_t queries = 0, keys = 0;
  SmallVector<bool> seen;

  bool hidesRow() const {
    for (int64_t t = 0; t < queries; ++t)
      if (!llvm::is_contained(ArrayRef<bool>(seen).slice(t * keys, keys), true))
        return true;
    return false;
  }
  bool isCausal() const {
    for (int64_t t = 0; t < queries; ++t)
      for (int64_t s = 0; s < keys; ++s)
        if (seen[t * keys + s] != (s <= t))
          return false;
    return true;
  }
  bool merge(ArrayRef<bool> other) {
    if (seen.empty())
      seen.append(other.begin(), other.end());
    for (auto [mine, theirs] : llvm::zip_equal(seen, other))
      mine &= theirs;
    return !hidesRow();
  }
};

// The elements of a constant that has a place for each query and key: [T, S], with axes of size 1 in front.
DenseElementsAttr placesOf(Value value, const Visible &visible) {
  auto constant = withoutReshapes(value).getDefiningOp<mt::ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  ArrayRef<int64_t> shape = tensorOf(value).getShape();
  if (!elements || shape.size() < 2 || elements.getNumElements() != visible.queries * visible.keys ||
      shape.take_back(2) != ArrayRef<int64_t>{visible.queries, visible.keys})
    return {};
  return elements;
}

// Scores without their mask, which is added to `visible`; null: it is none that an attention has. `scale` is what the
// formula multiplies the masked scores by.
Value withoutMask(Value scores, double scale, Visible &visible) {
  auto hides = [&](double score) { return score * scale <= hiddenScore; };
  if (auto select = scores.getDefiningOp<mt::SelectOp>()) {
    Value condition = select->getOperand(0);
    std::optional<double> first = numberOf(select->getOperand(1)), second = numberOf(select->getOperand(2));
    bool inverted = first.has_value();
    if (first.has_value() == second.has_value() || !hides(inverted ? *first : *second))
      return {};
    if (auto negation = condition.getDefiningOp<mt::NotOp>()) {
      inverted = !inverted;
      condition = negation.getOperand();
    }
    DenseElementsAttr elements = placesOf(condition, visible);
    Value kept = select->getOperand(first ? 2 : 1);
    if (!elements || kept.getType() != scores.getType())
      return {};
    SmallVector<bool> seen;
    for (bool element : elements.getValues<bool>())
      seen.push_back(element != inverted);
    return visible.merge(seen) ? kept : Value();
  }
  auto add = scores.getDefiningOp<mt::AddOp>();
  if (!add)
    return {};
  for (unsigned side : {0, 1}) {
    Value kept = add->getOperand(side), mask = add->getOperand(1 - side);
    if (kept.getType() != scores.getType())
      continue;
    if (numberOf(mask) == 0.0)
      return kept;
    auto elements = dyn_cast_or_null<DenseFPElementsAttr>(placesOf(mask, visible));
    if (!elements)
      continue;
    SmallVector<bool> seen;
    for (const APFloat &element : elements) {
      double number = element.convertToDouble();
      if (number != 0 && !hides(number))
        return {}; // a bias of positions
      seen.push_back(number == 0);
    }
    return visible.merge(seen) ? kept : Value();
  }
  return {};
}

// An attention under construction. Operands are [?, heads, places, channels].
class Match {
public:
  explicit Match(mt::MatmulOp product) : product(product), builder(product), location(product.getLoc()) {}

  void run() {
    rank = tensorOf(product.getResult()).getRank();
    if ((rank != withHeads && rank != withHeads - 1) || product.getTransposeA() ||
        !tensorOf(product.getResult()).isDynamicDim(0))
      return;
    // Shares times values; or the transpose of that, values times shares.
    valuesTransposed = product.getTransposeB();
    value = valuesTransposed ? product.getLhs() : product.getRhs();
    if (tensorOf(value).getRank() == rank && findSoftmax(valuesTransposed ? product.getRhs() : product.getLhs()) &&
        findScores())
      replaceMatched(product, build());
  }

private:
  // Finds a softmax with no other reader, with or without a dropout of its result.
  bool findSoftmax(Value shares) {
    if (auto drops = shares.getDefiningOp<mt::DropoutOp>();
        drops && shares.hasOneUse() && drops.getShared().empty() && !drops.getStep()) {
      dropout = drops;
      shares = drops.getOperand();
    }
    softmax = shares.getDefiningOp<mt::SoftmaxOp>();
    return softmax && shares.hasOneUse() && tensorOf(shares).getRank() == rank;
  }

  bool findScores() {
    Value scores = softmax.getOperand();
    ArrayRef<int64_t> shape = tensorOf(scores).getShape();
    visible.queries = shape[rank - 2];
    visible.keys = shape[rank - 1];
    while (!scores.getDefiningOp<mt::MatmulOp>()) {
      Factors factors = factorsOf(scores);
      Value next = factors.values.size() == 1 ? factors.values[0] : Value();
      if (next && next != scores && next.getType() == scores.getType()) {
        scale *= factors.number;
        scores = next;
      } else if (scale <= 0 || !(scores = withoutMask(scores, scale, visible))) {
        return false;
      }
    }
    auto inner = scores.getDefiningOp<mt::MatmulOp>();
    if (inner.getTransposeA() || tensorOf(inner.getLhs()).getRank() != rank ||
        tensorOf(inner.getRhs()).getRank() != rank)
      return false;
    Scaled left = scaledBy(builder, inner.getLhs()), right = scaledBy(builder, inner.getRhs());
    scale *= left.scale * right.scale;
    query = left.value;
    key = right.value;
    keyTransposed = !inner.getTransposeB();
    return true;
  }

  // [?, heads, places, channels], or [?, heads, channels, places], as [?, places, heads * channels].
  Value lines(Value value, bool channelsFirst) {
    if (rank != withHeads)
      return channelsFirst ? transposed(builder, location, value, {0, 2, 1}) : value;
    Value moved = transposed(builder, location, value,
                             channelsFirst ? ArrayRef<int64_t>{0, 3, 1, 2} : ArrayRef<int64_t>{0, 2, 1, 3});
    ArrayRef<int64_t> shape = tensorOf(moved).getShape();
    return reshaped(builder, location, moved, {shape[0], shape[1], shape[2] * shape[3]});
  }

  Value build() {
    bool heads = rank == withHeads;
    int64_t count = heads ? tensorOf(query).getDimSize(1) : 1;
    Value q = lines(query, false), k = lines(key, keyTransposed), v = lines(value, valuesTransposed);
    Value mask;
    bool causal = !visible.seen.empty() && visible.isCausal(),
         all = visible.seen.empty() || !llvm::is_contained(visible.seen, false);
    if (!causal && !all) {
      auto type = RankedTensorType::get({1, 1, visible.queries, visible.keys}, builder.getI1Type());
      mask = mt::ConstantOp::create(builder, location, DenseElementsAttr::get(type, ArrayRef<bool>(visible.seen)));
    }
    auto type = tensorOf(q).clone({ShapedType::kDynamic, visible.queries, tensorOf(v).getDimSize(2)});
    Value result = mt::AttentionOp::create(
        builder, location, type, q, k, v, mask, Value(), Value(), builder.getI64IntegerAttr(count), IntegerAttr(),
        causal && !all ? builder.getUnitAttr() : UnitAttr(), IntegerAttr(),
        builder.getF32FloatAttr(static_cast<float>(scale)), dropout ? dropout.getStreamAttr() : StringAttr(),
        dropout ? dropout.getRateAttr() : FloatAttr());
    if (!heads)
      return valuesTransposed ? transposed(builder, location, result, {0, 2, 1}) : result;
    int64_t width = tensorOf(v).getDimSize(2) / count;
    Value split = reshaped(builder, location, result, {ShapedType::kDynamic, visible.queries, count, width});
    return transposed(builder, location, split,
                      valuesTransposed ? ArrayRef<int64_t>{0, 2, 3, 1} : ArrayRef<int64_t>{0, 2, 1, 3});
  }

  mt::MatmulOp product;
  OpBuilder builder;
  Location location;
  int64_t rank = 0;
  mt::DropoutOp dropout;
  mt::SoftmaxOp softmax;
  Visible visible;
  double scale = 1;
  Value query, key, value;
  bool keyTransposed = false, valuesTransposed = false;
};

struct RecognizeAttention : impl::RecognizeAttentionBase<RecognizeAttention> {
  void runOnOperation() override {
    if (mt::Compilation(getOperation()).isDouble()) // constants are matched with the accuracy of f32
      return;
    forEach<mt::MatmulOp>(getOperation(), [](mt::MatmulOp product) { Match(product).run(); });
  }
};

} // namespace
} // namespace mtc
