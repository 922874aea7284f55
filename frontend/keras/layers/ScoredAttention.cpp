// SPDX-License-Identifier: Apache-2.0
//
// Attention without projections: Keras' Attention and AdditiveAttention, whose scores are products or sums of tanh.
#include "frontend/keras/LayerTable.h"

using namespace mlir;
using mlir::mt::Expr;

namespace mtc::keras {
namespace {

// Scores [?, T, S] of sums of queries [?, T, C] and keys [?, S, C], before the sum over C.
Expr everyPair(LayerBuilder &layer, Value query, Value key) {
  ArrayRef<int64_t> q = layer.shapeOf(query), k = layer.shapeOf(key);
  return layer.expr(layer.reshape(query, {batch, q[1], 1, q[2]})) +
         layer.expr(layer.reshape(key, {batch, 1, k[1], k[2]}));
}

Value dotScores(LayerBuilder &layer, Value query, Value key) {
  bool scaled = layer.config.boolean("use_scale", false);
  std::string mode = layer.config.text("score_mode", "dot");
  if (mode != "dot" && mode != "concat")
    return layer.fail("expected score_mode to be dot or concat, found " + mode);
  Value scale = scaled ? layer.constantVariable("scale", {}, 1, true) : Value();
  if (mode == "dot") {
    Value product = mt::MatmulOp::create(layer.builder, layer.location, query, key, false, true);
    return scaled && scale ? (layer.expr(product) * layer.expr(scale)).value() : product;
  }
  Value weight = layer.constantVariable("concat_score_weight", {}, 1, true);
  if (!weight || (scaled && !scale))
    return {};
  Expr sum = everyPair(layer, query, key);
  return (squeezeLast(sumLast(tanh(scaled ? layer.expr(scale) * sum : sum))) * layer.expr(weight)).value();
}

Value additiveScores(LayerBuilder &layer, Value query, Value key) {
  layer.config.ignore({"score_mode"});
  Expr sum = tanh(everyPair(layer, query, key));
  if (!layer.config.boolean("use_scale", true))
    return squeezeLast(sumLast(sum)).value();
  Value scale = layer.variable("scale", {layer.shapeOf(query)[2]}, "scale_initializer");
  return scale ? squeezeLast(sumLast(layer.expr(scale) * sum)).value() : scale;
}

// Hides what a mask, [?, S] or none, and causality do not show: -1e9 is added, as in Keras.
Expr hidden(LayerBuilder &layer, Expr scores, Value steps, bool causal) {
  int64_t queries = scores.type().getShape()[1], keys = scores.type().getShape()[2];
  constexpr double least = -1e9;
  if (causal) {
    SmallVector<bool> seen;
    for (int64_t t = 0; t < queries; ++t)
      for (int64_t s = 0; s < keys; ++s)
        seen.push_back(s <= t);
    auto type = RankedTensorType::get({queries, keys}, layer.builder.getI1Type());
    Expr lower = layer.expr(layer.constant(DenseElementsAttr::get(type, ArrayRef<bool>(seen))));
    if (steps)
      lower = lower.make(layer.binary<mt::AndOp>(layer.reshape(steps, {batch, 1, keys}), lower.value()));
    return select(lower, scores, scores + least);
  }
  return steps ? select(layer.expr(layer.reshape(steps, {batch, 1, keys})), scores, scores + least) : scores;
}

template <Value (*scoresOf)(LayerBuilder &, Value, Value)> Value buildScored(LayerBuilder &layer) {
  for (const char *name : {"mask", "return_attention_scores"})
    if (const Operand *given = layer.keyword(name); given && !(given->constant && *given->constant == false))
      return layer.fail(std::string("expected a call without ") + name + ", which is not supported");
  const Operand *flag = layer.keyword("use_causal_mask");
  bool causal = flag && flag->constant && *flag->constant == true;
  SmallVector<Value> tensors = layer.inputs(2);
  if (tensors.size() < 2 || tensors.size() > 3)
    return layer.fail("expected a query, a value and perhaps a key, found " + std::to_string(tensors.size()) +
                      " tensors");
  SmallVector<Value> masks = layer.masks();
  layer.outputMask = layer.inputMask();
  for (Value &tensor : tensors) {
    tensor = layer.toFloat(tensor);
    if (layer.typeOf(tensor).getRank() != 3)
      return layer.fail("expected tensors of 3 axes with the batch, found " +
                        std::to_string(layer.typeOf(tensor).getRank()));
  }
  Value query = tensors[0], value = tensors[1], key = tensors.size() > 2 ? tensors[2] : value;
  if (layer.shapeOf(query)[2] != layer.shapeOf(key)[2] || layer.shapeOf(key)[1] != layer.shapeOf(value)[1])
    return layer.fail("expected keys as wide as the queries and as many as the values, found others");
  double rate = layer.config.real("dropout", 0);
  layer.config.ignore({"seed"});
  if (rate < 0 || rate >= 1)
    return layer.fail("expected a dropout from 0 to less than 1, found " + std::to_string(rate));
  Value scores = scoresOf(layer, query, key);
  if (!scores)
    return {};
  Expr seen = hidden(layer, layer.expr(scores), masks[1], causal);
  Value weights = mt::SoftmaxOp::create(layer.builder, layer.location, seen.type(), seen.value());
  if (rate > 0)
    weights = layer.made<mt::DropoutOp>(
        {weights},
        {layer.builder.getNamedAttr("stream", layer.builder.getStringAttr(layer.stream())), layer.number("rate", rate)},
        weights.getType());
  Value result = mt::MatmulOp::create(layer.builder, layer.location, weights, value, false, false);
  return masks[0] ? select(unsqueezeLast(layer.expr(masks[0])), layer.expr(result), 0.0).value() : result;
}

} // namespace

llvm::ArrayRef<LayerEntry> scoredAttentionLayers() {
  static constexpr LayerEntry entries[] = {{"Attention", buildScored<dotScores>},
                                           {"AdditiveAttention", buildScored<additiveScores>}};
  return entries;
}

} // namespace mtc::keras
