// SPDX-License-Identifier: Apache-2.0
//
// Functions of keras.ops that move elements (reshaping, slicing), and products.
#include "frontend/keras/LayerTable.h"

using namespace mlir;

namespace mtc::keras {
namespace {

int64_t rankOf(Value x) { return LayerBuilder::typeOf(x).getRank(); }

Value transpose(LayerBuilder &layer, Value x, ArrayRef<int64_t> order) {
  return llvm::is_sorted(order) ? x : mt::TransposeOp::create(layer.builder, layer.location, x, order).getResult();
}

// The operands that are tensors.
SmallVector<Value> operands(LayerBuilder &layer, size_t count) {
  SmallVector<Value> tensors;
  for (const Operand &operand : layer.arguments())
    if (operand.tensor)
      tensors.push_back(layer.toFloat(operand.tensor));
  if (tensors.size() == count && layer.arguments().size() == count)
    return tensors;
  layer.fail("expected " + std::to_string(count) + " tensors, found " + std::to_string(tensors.size()));
  return {};
}

// Both tensors need rows and columns in each sample: a vector per sample must be a matrix of one row or column. A
// constant matrix is shared by all samples.
Value buildMatmul(LayerBuilder &layer) {
  llvm::ArrayRef<Operand> arguments = layer.arguments();
  if (arguments.size() == 2 && arguments[0].tensor && layer.isArray(arguments[1])) {
    Value x = layer.toFloat(arguments[0].tensor), matrix = layer.array(arguments[1], /*keepOnes=*/true);
    if (!matrix)
      return {};
    if (rankOf(matrix) != 2 || rankOf(x) < 2 || !layer.typeOf(matrix).getElementType().isF32() ||
        layer.shapeOf(matrix)[0] != layer.shapeOf(x).back())
      return layer.fail(
          "expected a matrix of numbers with as many rows as the tensor's last axis has elements, found another array");
    return mt::MatmulOp::create(layer.builder, layer.location, x, matrix, false, false);
  }
  SmallVector<Value> tensors = operands(layer, 2);
  if (tensors.empty())
    return {};
  for (Value tensor : tensors)
    if (rankOf(tensor) < 3 || rankOf(tensor) != rankOf(tensors[0]))
      return layer.fail("expected two tensors of the same number of axes, 3 or more, found " +
                        std::to_string(rankOf(tensors[0])) + " and " + std::to_string(rankOf(tensors[1])));
  return layer.inferred<mt::MatmulOp>(tensors, {});
}

Value buildReshapeFunction(LayerBuilder &layer) {
  Value x = layer.input();
  if (!x)
    return {};
  SmallVector<int64_t> shape = layer.config.integers("newshape");
  int64_t size = 1, known = 1, open = -1;
  for (int64_t extent : layer.shapeOf(x).drop_front())
    size *= extent;
  if (shape.size() < 1 || shape.size() > 8 || shape[0] != -1)
    return layer.fail("expected a shape of 1 to 8 sizes that begins with -1, the batch");
  shape[0] = batch;
  for (size_t i = 1; i < shape.size(); ++i)
    if (shape[i] == -1 && open < 0)
      open = static_cast<int64_t>(i);
    else if (shape[i] < 1 || __builtin_mul_overflow(known, shape[i], &known))
      return layer.fail("expected sizes of 1 or more, found " + std::to_string(shape[i]));
  if (open >= 0 && size % known == 0)
    shape[static_cast<size_t>(open)] = size / known;
  if (open >= 0 ? size % known != 0 : size != known)
    return layer.fail("expected a shape of " + std::to_string(size) + " elements per sample, found " +
                      std::to_string(known));
  return layer.reshape(x, shape);
}

Value buildTranspose(LayerBuilder &layer) {
  Value x = layer.input();
  if (!x)
    return {};
  SmallVector<int64_t> order = layer.config.integers("axes", rankOf(x)), sorted(order);
  llvm::sort(sorted);
  for (auto [axis, entry] : llvm::enumerate(sorted))
    if (entry != static_cast<int64_t>(axis) || order[0] != 0)
      return layer.fail("expected axes to be a permutation that leaves the batch first");
  return transpose(layer, x, order);
}

template <bool swap> Value buildMoved(LayerBuilder &layer) {
  Value x = layer.input();
  if (!x)
    return {};
  SmallVector<int64_t> ends = {layer.config.integer(swap ? "axis1" : "source"),
                               layer.config.integer(swap ? "axis2" : "destination")},
                       order;
  for (int64_t &axis : ends) {
    axis += axis < 0 ? rankOf(x) : 0;
    if (axis < 1 || axis >= rankOf(x))
      return layer.fail("expected axes from 1 to " + std::to_string(rankOf(x) - 1) + ", found " + std::to_string(axis));
  }
  for (int64_t axis = 0; axis < rankOf(x); ++axis)
    order.push_back(axis);
  if (swap) {
    std::swap(order[static_cast<size_t>(ends[0])], order[static_cast<size_t>(ends[1])]);
  } else {
    order.erase(order.begin() + ends[0]);
    order.insert(order.begin() + ends[1], ends[0]);
  }
  return transpose(layer, x, order);
}

Value withAxis(LayerBuilder &layer, Value x, int64_t axis) {
  axis += axis < 0 ? rankOf(x) + 1 : 0;
  if (axis < 1 || axis > rankOf(x) || rankOf(x) > 7)
    return layer.fail("expected an axis from 1 to " + std::to_string(std::min<int64_t>(rankOf(x), 7)) + ", found " +
                      std::to_string(axis));
  SmallVector<int64_t> shape(layer.shapeOf(x));
  shape.insert(shape.begin() + axis, 1);
  return layer.reshape(x, shape);
}

Value buildExpandDims(LayerBuilder &layer) {
  Value x = layer.input();
  int64_t axis = layer.config.integer("axis");
  return x ? withAxis(layer, x, axis) : x;
}

Value buildSqueeze(LayerBuilder &layer) {
  Value x = layer.input();
  if (!x)
    return {};
  SmallVector<int64_t> axes, shape;
  if (layer.config.find("axis")) {
    std::optional<SmallVector<int64_t>> requested = sampleAxes(layer, x, readAxes(layer));
    if (!requested)
      return {};
    axes = *requested;
  } else {
    for (int64_t axis = 1; axis < rankOf(x); ++axis)
      if (layer.shapeOf(x)[axis] == 1)
        axes.push_back(axis);
  }
  for (auto [axis, size] : llvm::enumerate(layer.shapeOf(x)))
    if (!llvm::is_contained(axes, static_cast<int64_t>(axis)))
      shape.push_back(size);
    else if (size != 1)
      return layer.fail("expected an axis of size 1, found " + std::to_string(size));
  return layer.reshape(x, shape);
}

Value buildStack(LayerBuilder &layer) {
  SmallVector<Value> tensors = layer.inputs();
  int64_t axis = layer.config.integer("axis", 0);
  for (Value &tensor : tensors)
    if (tensor = withAxis(layer, layer.toFloat(tensor), axis); !tensor)
      return {};
  if (tensors.empty())
    return {};
  axis += axis < 0 ? rankOf(tensors[0]) : 0;
  return layer.inferred<mt::ConcatOp>(tensors,
                                      {layer.builder.getNamedAttr("dim", layer.builder.getI64IntegerAttr(axis))});
}

Value buildFlip(LayerBuilder &layer) {
  Value x = layer.input();
  std::optional<SmallVector<int64_t>> axes = x ? sampleAxes(layer, x, readAxes(layer)) : std::nullopt;
  return axes ? mt::ReverseOp::create(layer.builder, layer.location, x, *axes).getResult() : Value();
}

// ---- parts

struct Part {
  SmallVector<int64_t> starts, sizes, strides, shape; // without the batch axis, except for `shape`
};

// An integer of a slice, counted from the end if negative, clamped to 0 .. size.
int64_t bound(const Json *value, int64_t size, int64_t otherwise) {
  if (!value || !value->is_number_integer())
    return otherwise;
  int64_t at = value->get<int64_t>();
  return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
}

bool readKey(LayerBuilder &layer, const Json &key, int64_t size, Part &part) {
  int64_t start, stop = 0, step = 1;
  if (key.is_number_integer()) {
    start = key.get<int64_t>();
    start += start < 0 ? size : 0;
    stop = start + 1;
  } else {
    const Json *config = textMember(key, "class_name") == "__slice__" ? member(key, "config") : nullptr;
    const Json *by = config ? member(*config, "step") : nullptr;
    step = by && by->is_number_integer() ? by->get<int64_t>() : by && !by->is_null() ? 0 : 1;
    if (!config || step < 1)
      return layer.fail("expected keys that are numbers or slices with steps of 1 or more, found " + describe(key)),
             false;
    start = bound(member(*config, "start"), size, 0);
    stop = bound(member(*config, "stop"), size, size);
    part.shape.push_back((stop - start + step - 1) / step);
  }
  if (start < 0 || start >= stop || stop > size)
    return layer.fail("expected a part of " + std::to_string(size) + " elements, found " + std::to_string(start) +
                      " to " + std::to_string(stop)),
           false;
  part.starts.push_back(start);
  part.sizes.push_back((stop - start + step - 1) / step);
  part.strides.push_back(step);
  return true;
}

bool isWholeSlice(const Json &key) {
  const Json *config = textMember(key, "class_name") == "__slice__" ? member(key, "config") : nullptr;
  return config && llvm::all_of(*config, [](const Json &item) { return item.is_null(); });
}

Value buildGetItem(LayerBuilder &layer) {
  if (layer.arguments().size() != 2 || !layer.arguments()[0].tensor || !layer.arguments()[1].constant)
    return layer.fail("expected a tensor and a key");
  Value x = layer.arguments()[0].tensor;
  const Json &argument = *layer.arguments()[1].constant;
  std::vector<Json> keys = argument.is_array() ? argument.get<std::vector<Json>>() : std::vector<Json>{argument};
  auto isEllipsis = [](const Json &key) { return textMember(key, "class_name") == "__ellipsis__"; };
  static const Json whole = {{"class_name", "__slice__"}, {"config", Json::object()}};
  // An ellipsis, or the end of the keys, stands for all axes without a key.
  auto named =
      std::count_if(keys.begin(), keys.end(), [&](const Json &key) { return !key.is_null() && !isEllipsis(key); });
  auto ellipsis = std::find_if(keys.begin(), keys.end(), isEllipsis);
  if (std::count_if(keys.begin(), keys.end(), isEllipsis) > 1 || named > rankOf(x))
    return layer.fail("expected keys for " + std::to_string(rankOf(x)) + " axes, found " + std::to_string(named));
  if (ellipsis != keys.end())
    ellipsis = keys.erase(ellipsis);
  keys.insert(ellipsis, static_cast<size_t>(rankOf(x) - named), whole);
  if (!isWholeSlice(keys[0]))
    return layer.fail("expected a full slice of the batch axis, found a part of the batch");
  Part part;
  part.shape.push_back(batch);
  int64_t axis = 1;
  for (const Json &key : llvm::drop_begin(keys))
    if (key.is_null())
      part.shape.push_back(1);
    else if (!readKey(layer, key, layer.shapeOf(x)[axis++], part))
      return {};
  if (part.shape.size() > 8)
    return layer.fail("expected at most 8 axes, found " + std::to_string(part.shape.size()));
  Value slice =
      layer.inferred<mt::SliceOp>({x}, {layer.integers("starts", part.starts), layer.integers("sizes", part.sizes),
                                        layer.integers("strides", part.strides)});
  return slice ? layer.reshape(slice, part.shape) : slice;
}

// Splits into equal parts, or at the given indices.
Value buildSplit(LayerBuilder &layer) {
  Value x = layer.input();
  std::optional<SmallVector<int64_t>> axes = x ? sampleAxes(layer, x, readAxes(layer)) : std::nullopt;
  const Json *sections = layer.config.find("indices_or_sections");
  if (!axes || !sections)
    return {};
  int64_t axis = (*axes)[0], size = layer.shapeOf(x)[axis];
  SmallVector<int64_t> ends = layer.config.integers("indices_or_sections", sections->is_array() ? -1 : 1);
  if (int64_t count = ends[0]; !sections->is_array()) {
    if (count < 1 || count > size || size % count != 0)
      return layer.fail("expected a number of parts that divides " + std::to_string(size) + " elements, found " +
                        std::to_string(count));
    ends.clear();
    for (int64_t i = 1; i < count; ++i)
      ends.push_back(i * (size / count));
  }
  ends.push_back(size);
  SmallVector<int64_t> starts(static_cast<size_t>(rankOf(x) - 1), 0), sizes(layer.shapeOf(x).drop_front());
  int64_t before = 0;
  for (int64_t end : ends) {
    if (end <= before || end > size)
      return layer.fail("expected increasing indices from 1 to " + std::to_string(size - 1) + ", found " +
                        std::to_string(end));
    starts[static_cast<size_t>(axis - 1)] = before;
    sizes[static_cast<size_t>(axis - 1)] = end - before;
    layer.others.push_back(mt::SliceOp::create(layer.builder, layer.location, x, starts, sizes));
    before = end;
  }
  Value first = layer.others[0];
  layer.others.erase(layer.others.begin());
  return first;
}

} // namespace

llvm::ArrayRef<LayerEntry> tensorPartLayers() {
  static constexpr LayerEntry entries[] = {
      {"Matmul", buildMatmul},           {"Reshape", buildReshapeFunction},
      {"Transpose", buildTranspose},     {"Swapaxes", buildMoved<true>},
      {"Moveaxis", buildMoved<false>},   {"ExpandDims", buildExpandDims},
      {"Squeeze", buildSqueeze},         {"Stack", buildStack},
      {"Concatenate", buildConcatenate}, {"Flip", buildFlip},
      {"GetItem", buildGetItem},         {"Split", buildSplit},
  };
  return entries;
}

} // namespace mtc::keras
