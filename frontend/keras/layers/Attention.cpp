// SPDX-License-Identifier: Apache-2.0
//
// Products of two tensors of a sample: attention and dot products.
#include "frontend/keras/LayerTable.h"
#include "frontend/keras/layers/AttendedAxes.h"

using namespace mlir;
using mlir::mt::Expr;

namespace mtc::keras {
namespace {

// The product of all sizes, at most 2^40 for an existing tensor.
int64_t countOf(ArrayRef<int64_t> sizes) {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

// A dense layer inside of the attention: contracts the last axes of x, of sizes `from`, and adds new axes `to`, which
// the kernel and the bias have.
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

// The call's attention_mask, [?, T, S] or [?, heads or 1, T, S], as booleans of four axes; null if there is none.
Value givenMask(LayerBuilder &layer, const Operand *operand) {
  if (!operand)
    return {};
  if (layer.isArray(*operand)) { // [T, S], [1, T, S] or [1, heads, T, S]
    Value mask = layer.array(*operand, /*keepOnes=*/true);
    if (!mask)
      return {};
    ArrayRef<int64_t> shape = layer.shapeOf(mask);
    if (shape.size() < 2 || shape.size() > 4 || (shape.size() > 2 && shape[0] != 1))
      return layer.fail("expected an attention_mask that is the same for all samples, found one of " +
                        std::to_string(shape.size()) + " axes for each");
    if (shape.size() > 2)
      mask = layer.reshape(mask, shape.drop_front());
    return layer.typeOf(mask).getElementType().isInteger(1) ? mask : (!(layer.expr(mask) == 0.0)).value();
  }
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

SmallVector<int64_t> outputShape(LayerBuilder &layer, int64_t channels) {
  const Json *requested = layer.config.find("output_shape");
  SmallVector<int64_t> shape = !requested ? SmallVector<int64_t>{channels}
                                          : layer.config.integers("output_shape", requested->is_array() ? -1 : 1);
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

// Mask of the existing steps of a tensor of the call, [?, S]; null: all steps.
Value stepMask(LayerBuilder &layer, size_t index, const std::string &name) {
  if (const Operand *given = layer.keyword(name + "_mask"); given && given->tensor)
    return given->tensor;
  if (const Operand *named = layer.keyword(name))
    return named->mask;
  return index < layer.arguments().size() ? layer.arguments()[index].mask : Value();
}

// Combines a mask of scores, which may be null, with the masks of values and keys: no query attends to a step that does
// not exist. The mask of the query is ignored, because nothing reads the result of a query that does not exist.
Value withStepMasks(LayerBuilder &layer, Value mask) {
  Value value = stepMask(layer, 1, "value"), key = stepMask(layer, 2, "key");
  for (Value steps : {value, key == value ? Value() : key}) {
    if (!steps)
      continue;
    ArrayRef<int64_t> shape = layer.shapeOf(steps);
    if (shape.size() != 2 || !layer.typeOf(steps).getElementType().isInteger(1))
      return layer.fail("expected a mask of one flag for each step of a sample, found another");
    Value seen = layer.reshape(steps, {batch, 1, 1, shape[1]});
    mask = mask ? layer.binary<mt::AndOp>(mask, seen) : seen;
  }
  return mask;
}

// Configuration of an attention layer.
struct Options {
  int64_t heads, keyHeads, keySize, valueSize;
  double rate = 0;
  int64_t window = 0; // 0: no window
  bool gated = false, causal = false;
};

// Adds the options and the flags of the call.
Options readOptions(LayerBuilder &layer, Options options) {
  options.rate = layer.config.real("dropout", 0);
  if (options.rate < 0 || options.rate >= 1)
    layer.fail("expected a dropout from 0 to less than 1, found " + std::to_string(options.rate));
  options.window = layer.config.find("sliding_window") ? layer.size("sliding_window", maxUnits) : 0;
  options.gated = layer.config.boolean("use_gate", false);
  options.causal = readFlag(layer, "use_causal_mask");
  if (readFlag(layer, "return_attention_scores"))
    layer.fail("expected a call without return_attention_scores, which is not supported");
  if (!layer.config.boolean("use_bias", true))
    layer.config.ignore({"bias_initializer", "bias_regularizer"});
  layer.config.expectAbsent({"activity_regularizer"});
  layer.config.ignore({"seed", "flash_attention"});
  return options;
}

// Builds mt.attention; null after an error at the layer.
Value attend(LayerBuilder &layer, const Options &options, Value query, Value key, Value value, Value mask) {
  OpBuilder &builder = layer.builder;
  auto number = [&](int64_t count) { return builder.getI64IntegerAttr(count); };
  OperationState state(layer.location, mt::AttentionOp::getOperationName());
  state.addOperands({query, key, value});
  if (mask)
    state.addOperands(mask);
  auto &properties = state.getOrAddProperties<mt::AttentionOp::Properties>();
  properties.operandSegmentSizes = {1, 1, 1, mask ? 1 : 0, 0};
  properties.heads = number(options.heads);
  if (options.keyHeads != options.heads)
    properties.key_heads = number(options.keyHeads);
  if (options.causal)
    properties.causal = builder.getUnitAttr();
  if (options.window)
    properties.window = number(options.window);
  if (options.rate > 0) {
    properties.stream = builder.getStringAttr(layer.stream());
    properties.rate = builder.getF32FloatAttr(static_cast<float>(options.rate));
  }
  SmallVector<Type> types;
  if (failed(mt::AttentionOp::inferReturnTypes(builder.getContext(), layer.location, state.operands, DictionaryAttr(),
                                               state.getRawProperties(), RegionRange(), types)))
    return {};
  state.addTypes(types);
  return builder.create(state)->getResult(0);
}

// Builds the layer from its inputs, [?, T, C] or [?, F, T, C] each, to its output with axes `output`. `prefix` is the
// common prefix of its dense layers in a weights file.
Value buildHeads(LayerBuilder &layer, const Options &options, ArrayRef<Value> inputs, Value mask,
                 ArrayRef<int64_t> output, const std::string &prefix) {
  Value query = inputs[0], key = inputs[1], value = inputs[2];
  auto channels = [&](Value x) { return SmallVector<int64_t>{layer.shapeOf(x).back()}; };
  SmallVector<int64_t> seenShape = {options.heads, options.valueSize};
  Value q = project(layer, query, "query", prefix + "query_dense", channels(query), {options.heads, options.keySize});
  Value k = project(layer, key, "key", prefix + "key_dense", channels(key), {options.keyHeads, options.keySize});
  Value gate = options.gated ? project(layer, query, "gate", "_gate_dense", channels(query), seenShape) : Value();
  Value v =
      project(layer, value, "value", prefix + "value_dense", channels(value), {options.keyHeads, options.valueSize});
  if (!q || !k || !v || (options.gated && !gate))
    return {};
  Value seen = attend(layer, options, q, k, v, mask);
  if (!seen)
    return {};
  if (options.gated)
    seen = (layer.expr(seen) * sigmoid(layer.expr(gate))).value();
  return project(layer, seen, "attention_output", prefix + "output_dense", seenShape, output);
}

Value buildAttention(LayerBuilder &layer) {
  // Keyword arguments come first, because reading one changes the list of arguments.
  Value query = argument(layer, 0, "query"), value = argument(layer, 1, "value"), key = argument(layer, 2, "key");
  if (!query || !value)
    return layer.fail("expected a call with a query and a value");
  key = key ? key : value;
  std::optional<AttendedAxes> attended = readAttendedAxes(layer, query, value);
  if (!attended)
    return {};
  if (layer.shapeOf(key).drop_back() != layer.shapeOf(value).drop_back())
    return layer.fail("expected as many keys as values, found other sizes");
  query = attended->arrange(layer, query);
  value = attended->arrange(layer, value);
  key = attended->arrange(layer, key);
  Options options;
  options.heads = options.keyHeads = layer.size("num_heads", maxFactor);
  options.keySize = layer.size("key_dim", maxFactor);
  options.valueSize = layer.config.find("value_dim") ? layer.size("value_dim", maxFactor) : options.keySize;
  options = readOptions(layer, options);
  const Operand *mask = layer.keyword("attention_mask");
  bool masked = mask || stepMask(layer, 1, "value") || stepMask(layer, 2, "key");
  if ((masked || options.causal || options.window) && (attended->axes.size() != 1 || attended->free != 1))
    return layer.fail(
        "expected attention over axis 1 only, because there is a mask or a window, found other attention_axes");
  Value maskValue = withStepMasks(layer, givenMask(layer, mask));
  SmallVector<int64_t> output = outputShape(layer, layer.shapeOf(query).back());
  if (layer.config.failed())
    return {};
  Value result = buildHeads(layer, options, {query, key, value}, maskValue, output, "");
  return result ? attended->restore(layer, result, output) : result;
}

// Several heads of the queries share a head of the keys.
Value buildGroupedAttention(LayerBuilder &layer) {
  Value query = argument(layer, 0, "query"), value = argument(layer, 1, "value"), key = argument(layer, 2, "key");
  if (!query || !value)
    return layer.fail("expected a call with a query and a value");
  key = key ? key : value;
  Options options;
  options.heads = layer.size("num_query_heads", maxFactor);
  options.keyHeads = layer.size("num_key_value_heads", maxFactor);
  options.keySize = options.valueSize = layer.size("head_dim", maxFactor);
  options = readOptions(layer, options);
  for (Value x : {query, key, value})
    if (layer.typeOf(x).getRank() != 3)
      return layer.fail("expected tensors of 3 axes with the batch, found " +
                        std::to_string(layer.typeOf(x).getRank()));
  Value maskValue = withStepMasks(layer, givenMask(layer, layer.keyword("attention_mask")));
  if (layer.config.failed())
    return {};
  return buildHeads(layer, options, {layer.toFloat(query), layer.toFloat(key), layer.toFloat(value)}, maskValue,
                    layer.shapeOf(query).back(), "_");
}

// A bias of scores: a tensor, or an array that all samples share; null if there is none, and after an error.
Value scoreBias(LayerBuilder &layer, const Operand *operand) {
  if (!operand)
    return {};
  Value bias = operand->tensor           ? layer.toFloat(operand->tensor)
               : layer.isArray(*operand) ? layer.toFloat(*operand)
                                         : layer.fail("expected a bias that is a tensor, found something else");
  if (bias && mt::isSplit(bias.getType()) && layer.typeOf(bias).getRank() != 4)
    return layer.fail("expected a bias of 4 axes, found " + std::to_string(layer.typeOf(bias).getRank()));
  return bias;
}

// Attention whose scores have a bias, by products and a softmax. Inputs are [?, T, H, D] with equal numbers of heads.
Value attendWithBias(LayerBuilder &layer, ArrayRef<Value> inputs, Value bias, Value mask, double scale, bool causal) {
  auto byHead = [&](Value x) {
    return mt::TransposeOp::create(layer.builder, layer.location, x, ArrayRef<int64_t>{0, 2, 1, 3}).getResult();
  };
  Value product =
      mt::MatmulOp::create(layer.builder, layer.location, byHead(inputs[0]), byHead(inputs[1]), false, true);
  Value biased = layer.binary<mt::AddOp>((layer.expr(product) * scale).value(), bias);
  if (!biased || biased.getType() != product.getType())
    return biased ? layer.fail("expected a bias for each head, query and key, found other sizes") : biased;
  Expr scores = layer.expr(biased);
  constexpr double hidden = -1e9;
  if (mask)
    scores = select(layer.expr(mask), scores, hidden);
  int64_t queries = layer.shapeOf(biased)[2], keys = layer.shapeOf(biased)[3];
  SmallVector<bool> seen;
  for (int64_t t = 0; causal && t < queries; ++t)
    for (int64_t s = 0; s < keys; ++s)
      seen.push_back(s <= t);
  auto maskType = RankedTensorType::get({queries, keys}, layer.builder.getI1Type());
  if (causal)
    scores = select(layer.expr(layer.constant(DenseElementsAttr::get(maskType, ArrayRef<bool>(seen)))), scores, hidden);
  Value p = mt::SoftmaxOp::create(layer.builder, layer.location, product.getType(), scores.value());
  return byHead(mt::MatmulOp::create(layer.builder, layer.location, p, byHead(inputs[2]), false, false));
}

// keras.ops.dot_product_attention of [?, T, heads, size].
Value buildDotProductAttention(LayerBuilder &layer) {
  const Operand *bias = layer.keyword("bias"), *scaled = layer.keyword("scale");
  SmallVector<Value> inputs = {argument(layer, 0, "query"), argument(layer, 1, "key"), argument(layer, 2, "value")};
  for (Value &x : inputs) {
    if (!x || layer.typeOf(x).getRank() != 4)
      return layer.fail("expected a query, a key and a value of 4 axes with the batch, found others");
    x = layer.toFloat(x);
  }
  layer.config.ignore({"flash_attention"});
  layer.config.expectAbsent({"attn_logits_soft_cap"});
  ArrayRef<int64_t> query = layer.shapeOf(inputs[0]), key = layer.shapeOf(inputs[1]), value = layer.shapeOf(inputs[2]);
  Options options;
  options.heads = query[2];
  options.keyHeads = key[2];
  options.keySize = query[3];
  options.valueSize = value[3];
  options.causal = layer.config.boolean("is_causal", false);
  double scale = 1 / std::sqrt(double(options.keySize));
  if (scaled && (!scaled->constant || !scaled->constant->is_number()))
    return layer.fail("expected a scale that is a number, found something else");
  if (scaled)
    scale = scaled->constant->get<double>();
  if (key[3] != query[3] || value[1] != key[1] || value[2] != key[2] || options.heads % options.keyHeads != 0)
    return layer.fail("expected keys and values of the same steps and heads, whose number divides that of the "
                      "queries, found other sizes");
  Value mask = givenMask(layer, layer.keyword("mask")), scores = scoreBias(layer, bias);
  if (layer.config.failed())
    return {};
  if (scores && options.heads != options.keyHeads)
    return layer.fail("expected as many heads of keys as of queries where there is a bias, found fewer");
  if (scores)
    return attendWithBias(layer, inputs, scores, mask, scale, options.causal);
  auto flat = [&](Value x) {
    ArrayRef<int64_t> shape = layer.shapeOf(x);
    return layer.reshape(x, {batch, shape[1], shape[2] * shape[3]});
  };
  if (scaled)
    inputs[0] = (layer.expr(inputs[0]) * (scale * std::sqrt(double(options.keySize)))).value();
  Value seen = attend(layer, options, flat(inputs[0]), flat(inputs[1]), flat(inputs[2]), mask);
  return seen ? layer.reshape(seen, {batch, query[1], query[2], value[3]}) : seen;
}

// Moves axis `from` to index `to`.
Value moveAxis(LayerBuilder &layer, Value x, int64_t from, int64_t to) {
  SmallVector<int64_t> order;
  for (int64_t axis = 0; axis < layer.typeOf(x).getRank(); ++axis)
    if (axis != from)
      order.push_back(axis);
  order.insert(order.begin() + to, from);
  return llvm::is_sorted(order) ? x : mt::TransposeOp::create(layer.builder, layer.location, x, order).getResult();
}

// Sums of products along one axis of each tensor.
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
    constexpr double epsilon = 1e-14; // added to the sum of squares
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
  static constexpr LayerEntry entries[] = {
      {"MultiHeadAttention", buildAttention}, {"GroupQueryAttention", buildGroupedAttention}, {"Dot", buildDot}};
  return entries;
}

llvm::ArrayRef<LayerEntry> attentionFunctions() {
  static constexpr LayerEntry entries[] = {{"DotProductAttention", buildDotProductAttention}};
  return entries;
}

} // namespace mtc::keras
