// SPDX-License-Identifier: Apache-2.0
//
// Layers that pad, crop, join or enlarge samples, and lookup by id.
#include "frontend/keras/LayerTable.h"
#include "frontend/keras/layers/Resizing.h"

using namespace mlir;

namespace mtc::keras {
namespace {

// One pair per axis: [[1, 2], [3, 4]], or [1, 2] for a single axis, or one number for all.
std::optional<SmallVector<std::pair<int64_t, int64_t>>> readPairs(LayerBuilder &layer, llvm::StringRef key,
                                                                  size_t axes) {
  const Json *value = layer.config.find(key);
  SmallVector<std::pair<int64_t, int64_t>> pairs;
  auto isSize = [](const Json &item) {
    return item.is_number_unsigned() && item.get<uint64_t>() <= uint64_t(maxFactor);
  };
  auto add = [&](const Json &low, const Json &high) {
    if (isSize(low) && isSize(high))
      pairs.push_back({low.get<int64_t>(), high.get<int64_t>()});
  };
  if (value && value->is_number())
    for (size_t i = 0; i < axes; ++i)
      add(*value, *value);
  else if (value && axes == 1 && value->is_array() && value->size() == 2)
    add((*value)[0], (*value)[1]);
  else if (value && value->is_array())
    for (const Json &item : *value) {
      bool pair = item.is_array() && item.size() == 2;
      add(pair ? item[0] : item, pair ? item[1] : item);
    }
  if (pairs.size() == axes)
    return pairs;
  layer.fail("expected " + key.str() + " to be two numbers for each of " + std::to_string(axes) + " axes, found " +
             (value ? describe(*value) : "none"));
  return std::nullopt;
}

template <int64_t axes> Value buildZeroPadding(LayerBuilder &layer) {
  Value x = layer.channelsLast(layer.toFloat(layer.input(axes + 2)));
  auto pairs = readPairs(layer, "padding", axes);
  if (!x || !pairs)
    return {};
  SmallVector<int64_t> low, high;
  for (auto [before, after] : *pairs) {
    low.push_back(before);
    high.push_back(after);
  }
  low.push_back(0);
  high.push_back(0);
  return layer.ownOrder(layer.inferred<mt::PadOp>({x}, {layer.integers("low", low), layer.integers("high", high)}));
}

template <int64_t axes> Value buildCropping(LayerBuilder &layer) {
  Value x = layer.channelsLast(layer.input(axes + 2));
  auto pairs = readPairs(layer, "cropping", axes);
  if (!x || !pairs)
    return {};
  SmallVector<int64_t> starts, sizes;
  for (auto [axis, pair] : llvm::enumerate(*pairs)) {
    int64_t size = layer.shapeOf(x)[axis + 1], left = size - pair.first - pair.second;
    if (left < 1)
      return layer.fail("expected cropping of less than " + std::to_string(size) + " elements, found " +
                        std::to_string(size - left));
    starts.push_back(pair.first);
    sizes.push_back(left);
  }
  starts.push_back(0);
  sizes.push_back(layer.shapeOf(x).back());
  return layer.ownOrder(
      layer.inferred<mt::SliceOp>({x}, {layer.integers("starts", starts), layer.integers("sizes", sizes)}));
}

// Repeats each element: adds a new axis after each enlarged axis, broadcasts it, and joins the two.
Value enlarge(LayerBuilder &layer, Value x, ArrayRef<int64_t> factors) {
  SmallVector<int64_t> open = {ShapedType::kDynamic}, full = open, joined = open;
  for (auto [axis, factor] : llvm::enumerate(factors)) {
    int64_t size = layer.shapeOf(x)[axis + 1];
    open.append({size, 1});
    full.append({size, factor});
    joined.push_back(size * factor);
  }
  for (SmallVector<int64_t> *shape : {&open, &full, &joined})
    shape->push_back(layer.shapeOf(x).back());
  auto type = RankedTensorType::get(full, layer.typeOf(x).getElementType());
  Value opened = layer.reshape(x, open);
  if (opened.getType() != type)
    opened = mt::BroadcastOp::create(layer.builder, layer.location, type, opened);
  return layer.reshape(opened, joined);
}

template <int64_t axes> Value buildUpSampling(LayerBuilder &layer) {
  Value x = layer.channelsLast(layer.toFloat(layer.input(axes + 2)));
  std::string interpolation = axes == 2 ? layer.config.text("interpolation", "nearest") : "nearest";
  SmallVector<int64_t> factors = layer.sizes("size", axes);
  if (!x || layer.config.failed())
    return {};
  if (interpolation == "nearest")
    return layer.ownOrder(enlarge(layer, x, factors));
  return layer.ownOrder(
      resizeImages(layer, x, layer.shapeOf(x)[1] * factors[0], layer.shapeOf(x)[2] * factors.back(), interpolation));
}

// The table of an embedding; null after an error.
Value embeddingTable(LayerBuilder &layer) {
  int64_t count = layer.size("input_dim"), width = layer.size("output_dim");
  layer.config.expectAbsent({"embeddings_constraint", "weights"});
  layer.config.ignore({"input_length"});
  return layer.config.failed() ? Value() : layer.variable("embeddings", {count, width}, "embeddings_initializer");
}

Value buildEmbedding(LayerBuilder &layer) {
  Value ids = layer.input(), table = ids ? embeddingTable(layer) : Value();
  if (!table)
    return {};
  auto type = layer.typeOf(ids).clone(layer.builder.getI32Type());
  if (ids.getType() != type)
    ids = mt::CastOp::create(layer.builder, layer.location, type, ids);
  layer.inputMask(); // the mask of the previous layer is not passed on
  if (layer.config.boolean("mask_zero", false))
    layer.outputMask = (!(layer.expr(ids) == 0.0)).value();
  return layer.inferred<mt::GatherOp>({table, ids}, {});
}

// With reverse = True, the products of vectors and all rows of the table: logits.
Value buildReversibleEmbedding(LayerBuilder &layer) {
  layer.config.expect("tie_weights", true);
  layer.config.expectAbsent({"reverse_dtype"});
  double cap = layer.config.find("logit_soft_cap") ? layer.config.real("logit_soft_cap") : 0;
  const Operand *reverse = layer.keyword("reverse");
  if (!reverse || !reverse->constant || *reverse->constant == false)
    return buildEmbedding(layer);
  layer.config.expect("mask_zero", false);
  Value x = layer.toFloat(layer.input()), table = x ? embeddingTable(layer) : Value();
  if (!table)
    return {};
  if (layer.typeOf(x).getRank() < 2 || layer.shapeOf(x).back() != layer.shapeOf(table)[1])
    return layer.fail("expected vectors of " + std::to_string(layer.shapeOf(table)[1]) + " elements with reverse");
  Value logits = mt::MatmulOp::create(layer.builder, layer.location, x, table, false, true);
  return cap ? (tanh(layer.expr(logits) / cap) * cap).value() : logits;
}

} // namespace

Value buildConcatenate(LayerBuilder &layer) {
  SmallVector<Value> tensors = layer.inputs();
  int64_t axis = layer.config.integer("axis", -1);
  if (tensors.empty())
    return {};
  int64_t rank = layer.typeOf(tensors[0]).getRank();
  axis += axis < 0 ? rank : 0;
  if (axis < 1 || axis >= rank)
    return layer.fail("expected an axis from 1 to " + std::to_string(rank - 1) + ", found " + std::to_string(axis));
  for (Value &tensor : tensors)
    tensor = layer.toFloat(tensor);
  return layer.inferred<mt::ConcatOp>(tensors,
                                      {layer.builder.getNamedAttr("dim", layer.builder.getI64IntegerAttr(axis))});
}

llvm::ArrayRef<LayerEntry> imageLayers() {
  static constexpr LayerEntry entries[] = {
      {"ZeroPadding1D", buildZeroPadding<1>}, {"ZeroPadding2D", buildZeroPadding<2>},
      {"ZeroPadding3D", buildZeroPadding<3>}, {"Cropping1D", buildCropping<1>},
      {"Cropping2D", buildCropping<2>},       {"Cropping3D", buildCropping<3>},
      {"Concatenate", buildConcatenate},      {"UpSampling1D", buildUpSampling<1>},
      {"UpSampling2D", buildUpSampling<2>},   {"UpSampling3D", buildUpSampling<3>},
      {"Embedding", buildEmbedding},          {"ReversibleEmbedding", buildReversibleEmbedding}};
  return entries;
}

} // namespace mtc::keras
