// SPDX-License-Identifier: Apache-2.0
//
// Products of two tensors of a sample: attention, dot products.
#include "frontend/keras/LayerTable.h"

using namespace mlir;
using mlir::mt::Expr;

namespace mtc::keras {
namespace {

constexpr int64_t batch = ShapedType::kDynamic;

// The product of all sizes; at most 2^40 in a tensor that exists.
int64_t countOf(ArrayRef<int64_t> sizes) {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

struct Heads {
  int64_t count, keySize, valueSize;
};

// A dense layer of its own inside the attention: over the last axes of x, `from` altogether; new axes `to`, which the
// kernel and the bias have.
Value project(LayerBuilder &layer, Value x, llvm::StringRef name, llvm::StringRef weights, ArrayRef<int64_t> from,
              ArrayRef<int64_t> to) {
  layer.part(name, weights);
  SmallVector<int64_t> shape(from);
  llvm::append_range(shape, to);
  Value kernel = layer.variable("kernel", shape, "kernel_initializer");
  Value bias = layer.config.boolean("use_bias", true) ? layer.variable("bias", to, "bias_initializer") : Value();
  if (!kernel || layer.config.failed())
    return {};
  Value product = mt::MatmulOp::create(layer.builder, layer.location, x,
                                       layer.reshape(kernel, {countOf(from), countOf(to)}), false, false);
  return bias ? layer.binary<mt::AddOp>(product, layer.reshape(bias, {countOf(to)})) : product;
}

// [?, T, N * H] as [?, N, T, H].
Value splitHeads(LayerBuilder &layer, Value x, int64_t heads, int64_t size) {
  Value split = layer.reshape(x, {batch, layer.shapeOf(x)[1], heads, size});
  return mt::TransposeOp::create(layer.builder, layer.location, split, ArrayRef<int64_t>{0, 2, 1, 3});
}

// Which of S keys each of T queries may see by its place, [T, S]; null: all.
Value placeMask(LayerBuilder &layer, int64_t queries, int64_t keys, bool causal, int64_t window) {
  if (!causal && !window)
    return {};
  SmallVector<bool> seen;
  for (int64_t t = 0; t < queries; ++t)
    for (int64_t s = 0; s < keys; ++s)
      seen.push_back((!causal || s <= t) && (!window || std::abs(t - s) < window));
  return layer.constant(
      DenseElementsAttr::get(RankedTensorType::get({queries, keys}, layer.builder.getI1Type()), ArrayRef<bool>(seen)));
}

// The call's attention_mask, [?, T, S] or [?, heads or 1, T, S], as booleans of four axes; null without one.
Value givenMask(LayerBuilder &layer, const Operand *operand) {
  if (!operand)
    return {};
  if (!operand->tensor)
    return layer.fail("expected attention_mask to be a tensor, found something else");
  Value mask = operand->tensor;
  ArrayRef<int64_t> shape = layer.shapeOf(mask);
  if (shape.size() == 3)
    mask = layer.reshape(mask, {batch, 1, shape[1], shape[2]});
  else if (shape.size() != 4)
    return layer.fail("expected an attention_mask of 3 or 4 axes, found " + std::to_string(shape.size()));
  return layer.typeOf(mask).getElementType().isInteger(1) ? mask : (!(layer.expr(layer.toFloat(mask)) == 0.0)).value();
}

bool readFlag(LayerBuilder &layer, llvm::StringRef name) {
  const Operand *flag = layer.keyword(name);
  if (!flag)
    return false;
  if (!flag->constant || !flag->constant->is_boolean()) {
    layer.fail("expected " + name.str() + " to be true or false");
    return false;
  }
  return flag->constant->get<bool>();
}

// Softmax of the scores [?, N, T, S] where the masks allow it. A query that may see no key sees all alike, and with
// `hide` none.
Value attend(LayerBuilder &layer, Value scores, Value places, Value given, bool hide) {
  Value mask = places && given ? layer.binary<mt::AndOp>(given, places) : places ? places : given;
  constexpr double hidden = -1e9;
  Expr shown = layer.expr(scores);
  if (mask)
    shown = select(layer.expr(mask), shown, hidden);
  Value p = mt::SoftmaxOp::create(layer.builder, layer.location, scores.getType(), shown.value());
  return mask && hide ? select(layer.expr(mask), layer.expr(p), 0.0).value() : p;
}

SmallVector<int64_t> outputShape(LayerBuilder &layer, int64_t channels) {
  const Json *given = layer.config.find("output_shape");
  SmallVector<int64_t> shape =
      !given ? SmallVector<int64_t>{channels} : layer.config.integers("output_shape", given->is_array() ? -1 : 1);
  for (int64_t size : shape)
    if (size < 1 || size > maxFactor)
      layer.fail("expected an output_shape of sizes from 1 to " + std::to_string(maxFactor) + ", found " +
                 std::to_string(size));
  if (shape.empty() || shape.size() > 4)
    layer.fail("expected an output_shape of 1 to 4 sizes, found " + std::to_string(shape.size()));
  return shape;
}

Value argument(LayerBuilder &layer, size_t index, llvm::StringRef name) {
  if (const Operand *named = layer.keyword(name))
    return named->tensor;
  return index < layer.arguments().size() ? layer.arguments()[index].tensor : Value();
}

Value buildAttention(LayerBuilder &layer) {
  // Keywords first: reading one moves it behind the arguments.
  Value query = argument(layer, 0, "query"), value = argument(layer, 1, "value"), key = argument(layer, 2, "key");
  if (!query || !value)
    return layer.fail("expected a call with a query and a value");
  query = layer.toFloat(query);
  value = layer.toFloat(value);
  key = key ? layer.toFloat(key) : value;
  for (Value tensor : {query, value, key})
    if (int64_t rank = layer.typeOf(tensor).getRank(); rank != 3)
      return layer.fail("expected tensors of 3 axes with the batch, found " + std::to_string(rank));
  int64_t queries = layer.shapeOf(query)[1], keys = layer.shapeOf(value)[1], channels = layer.shapeOf(query)[2];
  if (layer.shapeOf(key)[1] != keys)
    return layer.fail("expected as many keys as values, found " + std::to_string(layer.shapeOf(key)[1]) + " and " +
                      std::to_string(keys));
  if (layer.config.find("attention_axes") && layer.config.integers("attention_axes", 1)[0] != 1)
    return layer.fail("expected attention over axis 1");
  Heads heads{layer.size("num_heads", maxFactor), layer.size("key_dim", maxFactor), 0};
  heads.valueSize = layer.config.find("value_dim") ? layer.size("value_dim", maxFactor) : heads.keySize;
  double rate = layer.config.real("dropout", 0);
  if (rate < 0 || rate >= 1)
    layer.fail("expected a dropout from 0 to less than 1, found " + std::to_string(rate));
  int64_t window = layer.config.find("sliding_window") ? layer.size("sliding_window", maxUnits) : 0;
  bool gated = layer.config.boolean("use_gate", false), causal = readFlag(layer, "use_causal_mask");
  if (readFlag(layer, "return_attention_scores"))
    return layer.fail("expected a call without return_attention_scores, which is not supported");
  if (!layer.config.boolean("use_bias", true))
    layer.config.ignore({"bias_initializer", "bias_regularizer"});
  layer.config.expectAbsent({"activity_regularizer"});
  layer.config.ignore({"seed"});
  Value given = givenMask(layer, layer.keyword("attention_mask"));
  SmallVector<int64_t> output = outputShape(layer, channels);
  if (queries * keys > maxUnits / 8)
    layer.fail("expected fewer queries and keys, found " + std::to_string(queries) + " and " + std::to_string(keys));
  if (layer.config.failed())
    return {};

  SmallVector<int64_t> keyShape = {heads.count, heads.keySize}, valueShape = {heads.count, heads.valueSize};
  Value q = project(layer, query, "query", "query_dense", channels, keyShape);
  Value k = project(layer, key, "key", "key_dense", layer.shapeOf(key)[2], keyShape);
  Value gate = gated ? project(layer, query, "gate", "_gate_dense", channels, valueShape) : Value();
  Value v = project(layer, value, "value", "value_dense", layer.shapeOf(value)[2], valueShape);
  if (!q || !k || !v || (gated && !gate))
    return {};
  Value scaled =
      (layer.expr(splitHeads(layer, q, heads.count, heads.keySize)) * (1 / std::sqrt(double(heads.keySize)))).value();
  Value scores = mt::MatmulOp::create(layer.builder, layer.location, scaled,
                                      splitHeads(layer, k, heads.count, heads.keySize), false, true);
  Value p = attend(layer, scores, placeMask(layer, queries, keys, causal, window), given, rate > 0);
  if (rate > 0)
    p = layer.made<mt::DropoutOp>(
        {p},
        {layer.builder.getNamedAttr("stream", layer.builder.getStringAttr(layer.stream())), layer.number("rate", rate)},
        p.getType());
  Value seen = mt::MatmulOp::create(layer.builder, layer.location, p,
                                    splitHeads(layer, v, heads.count, heads.valueSize), false, false);
  seen = mt::TransposeOp::create(layer.builder, layer.location, seen, ArrayRef<int64_t>{0, 2, 1, 3});
  seen = layer.reshape(seen, {batch, queries, heads.count * heads.valueSize});
  if (gated)
    seen = (layer.expr(seen) * sigmoid(layer.expr(gate))).value();
  Value result = project(layer, seen, "attention_output", "output_dense", valueShape, output);
  SmallVector<int64_t> shape = {batch, queries};
  llvm::append_range(shape, output);
  return result ? layer.reshape(result, shape) : result;
}

// Axis `from` moved to place `to`.
Value moveAxis(LayerBuilder &layer, Value x, int64_t from, int64_t to) {
  SmallVector<int64_t> order;
  for (int64_t axis = 0; axis < layer.typeOf(x).getRank(); ++axis)
    if (axis != from)
      order.push_back(axis);
  order.insert(order.begin() + to, from);
  return llvm::is_sorted(order) ? x : mt::TransposeOp::create(layer.builder, layer.location, x, order).getResult();
}

// Sums of products along an axis of each.
Value buildDot(LayerBuilder &layer) {
  SmallVector<Value> tensors = layer.inputs(2);
  if (tensors.size() != 2)
    return tensors.empty() ? Value() : layer.fail("expected 2 tensors, found " + std::to_string(tensors.size()));
  SmallVector<int64_t> axes = layer.config.integers("axes", 2);
  bool normalize = layer.config.boolean("normalize", false);
  if (layer.config.failed())
    return {};
  for (auto [tensor, axis] : llvm::zip_equal(tensors, axes)) {
    int64_t rank = layer.typeOf(tensor).getRank();
    axis += axis < 0 ? rank : 0;
    if (axis < 1 || axis >= rank)
      return layer.fail("expected axes from 1 to " + std::to_string(rank - 1) + ", found " + std::to_string(axis));
    tensor = layer.toFloat(tensor);
    Expr x = layer.expr(tensor);
    constexpr double epsilon = 1e-14; // of the sum of squares
    if (normalize)
      tensor = (x / sqrt(maximum(sumOver(square(x), {axis}), epsilon))).value();
  }
  Value a = moveAxis(layer, tensors[0], axes[0], layer.typeOf(tensors[0]).getRank() - 1),
        b = moveAxis(layer, tensors[1], axes[1], 1);
  ArrayRef<int64_t> rows = layer.shapeOf(a).drop_front().drop_back(), columns = layer.shapeOf(b).drop_front(2);
  int64_t depth = layer.shapeOf(a).back();
  if (layer.shapeOf(b)[1] != depth)
    return layer.fail("expected axes of equal sizes, found " + std::to_string(depth) + " and " +
                      std::to_string(layer.shapeOf(b)[1]));
  SmallVector<int64_t> shape = {batch};
  llvm::append_range(shape, rows);
  llvm::append_range(shape, columns);
  if (shape.size() == 1)
    shape.push_back(1);
  if (shape.size() > 8)
    return layer.fail("expected at most 8 axes, found " + std::to_string(shape.size()));
  Value product = mt::MatmulOp::create(layer.builder, layer.location, layer.reshape(a, {batch, countOf(rows), depth}),
                                       layer.reshape(b, {batch, depth, countOf(columns)}), false, false);
  return layer.reshape(product, shape);
}

} // namespace

llvm::ArrayRef<LayerEntry> attentionLayers() {
  static constexpr LayerEntry entries[] = {{"MultiHeadAttention", buildAttention}, {"Dot", buildDot}};
  return entries;
}

} // namespace mtc::keras
