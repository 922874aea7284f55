// SPDX-License-Identifier: Apache-2.0
//
// Functions of keras.ops that reduce, compare, or have options.
#include "frontend/keras/LayerTable.h"

using namespace mlir;
using mlir::mt::Expr;

namespace mtc::keras {
namespace {

int64_t rankOf(Value x) { return LayerBuilder::typeOf(x).getRank(); }

// ---- reductions

using Reducer = Value (*)(LayerBuilder &, Value x, ArrayRef<int64_t> axes);

int64_t countOver(LayerBuilder &layer, Value x, ArrayRef<int64_t> axes) {
  int64_t count = 1;
  for (int64_t axis : axes)
    count *= layer.shapeOf(x)[axis];
  return count;
}

// Reduces axes, which are kept with size 1.
template <mt::Reduction kind> Value reduce(LayerBuilder &layer, Value x, ArrayRef<int64_t> axes) {
  SmallVector<int64_t> shape(layer.shapeOf(x));
  for (int64_t axis : axes)
    shape[static_cast<size_t>(axis)] = 1;
  return layer.reshape(mt::ReduceOp::create(layer.builder, layer.location, kind, x, axes), shape);
}
Value mean(LayerBuilder &layer, Value x, ArrayRef<int64_t> axes) {
  return (layer.expr(reduce<mt::Reduction::sum>(layer, x, axes)) / double(countOver(layer, x, axes))).value();
}
Value variance(LayerBuilder &layer, Value x, ArrayRef<int64_t> axes) {
  return mean(layer, square(layer.expr(x) - layer.expr(mean(layer, x, axes))).value(), axes);
}
Value deviation(LayerBuilder &layer, Value x, ArrayRef<int64_t> axes) {
  return sqrt(layer.expr(variance(layer, x, axes))).value();
}
Value logSumExp(LayerBuilder &layer, Value x, ArrayRef<int64_t> axes) {
  Expr most = layer.expr(reduce<mt::Reduction::max>(layer, x, axes));
  return (log(layer.expr(reduce<mt::Reduction::sum>(layer, exp(layer.expr(x) - most).value(), axes))) + most).value();
}

// Reduces the axes of the layer, which are left out if it does not keep them.
Value reduceAxes(LayerBuilder &layer, Value x, llvm::function_ref<Value(ArrayRef<int64_t>)> reducer) {
  bool keep = layer.config.boolean("keepdims", false);
  std::optional<SmallVector<int64_t>> axes = x ? sampleAxes(layer, x, readAxes(layer)) : std::nullopt;
  if (!axes || layer.config.failed())
    return {};
  Value result = reducer(*axes);
  SmallVector<int64_t> shape;
  for (auto [axis, size] : llvm::enumerate(layer.shapeOf(x)))
    if (!llvm::is_contained(*axes, static_cast<int64_t>(axis)))
      shape.push_back(size);
  return keep ? result : layer.reshape(result, shape);
}

template <Reducer reducer> Value buildReduction(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  layer.config.expectAbsent({"initial"});
  return reduceAxes(layer, x, [&](ArrayRef<int64_t> axes) { return reducer(layer, x, axes); });
}

Value buildSoftmaxFunction(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  SmallVector<int64_t> axes = readAxes(layer);
  return x && !layer.config.failed() ? softmaxOver(layer, x, axes) : Value();
}

// ---- element-wise, with options

template <mt::Compare kind> Value buildCompare(LayerBuilder &layer) {
  if (layer.arguments().size() != 2)
    return layer.fail("expected 2 operands, found " + std::to_string(layer.arguments().size()));
  Value a = layer.toFloat(layer.arguments()[0]), b = layer.toFloat(layer.arguments()[1]);
  if (!a || !b || !layer.standBesideBatch({a, b}))
    return {};
  return layer.inferred<mt::CompareOp>(
      {a, b}, {layer.builder.getNamedAttr("kind", mt::CompareAttr::get(layer.builder.getContext(), kind))});
}

Value buildWhere(LayerBuilder &layer) {
  llvm::ArrayRef<Operand> arguments = layer.arguments();
  if (arguments.size() != 3)
    return layer.fail("expected a condition and 2 operands, found " + std::to_string(arguments.size()) + " operands");
  Value condition = layer.isArray(arguments[0]) ? layer.array(arguments[0]) : arguments[0].tensor;
  if (!condition || !layer.typeOf(condition).getElementType().isInteger(1))
    return layer.fail("expected a condition of a comparison or of booleans, found another");
  Value a = layer.toFloat(arguments[1]), b = layer.toFloat(arguments[2]);
  return a && b && layer.standBesideBatch({condition, a, b}) ? layer.inferred<mt::SelectOp>({condition, a, b}, {})
                                                             : Value();
}

// A constant in the shape of a tensor, as float32.
Value filledLike(LayerBuilder &layer, double number) {
  Value x = layer.toFloat(layer.input());
  layer.config.ignore({"dtype"});
  return x ? select(layer.expr(x) >= layer.expr(x), number, number).value() : x; // for every x, also NaN
}
Value buildZerosLike(LayerBuilder &layer) { return filledLike(layer, 0); }
Value buildOnesLike(LayerBuilder &layer) { return filledLike(layer, 1); }

Value buildClip(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  double least = layer.config.real("x_min"), most = layer.config.real("x_max");
  return x ? minimum(maximum(layer.expr(x), least), most).value() : x;
}

// Integer exponents are products, which also work for negative bases.
Value buildPower(LayerBuilder &layer) {
  if (layer.arguments().size() != 2 || !layer.arguments()[0].tensor)
    return layer.fail("expected a tensor and an exponent");
  Value x = layer.toFloat(layer.arguments()[0].tensor);
  const Operand &exponent = layer.arguments()[1];
  constexpr double maxProducts = 16;
  if (exponent.tensor || !exponent.constant || !exponent.constant->is_number())
    return layer.fail("expected an exponent that is a number, found a tensor");
  double p = exponent.constant->get<double>();
  if (p == 0.5)
    return sqrt(layer.expr(x)).value();
  if (p != std::floor(p) || std::fabs(p) > maxProducts || p == 0)
    return layer.fail("expected an exponent of 0.5 or a whole number from -16 to 16 but 0, found " + std::to_string(p));
  Expr base = layer.expr(x), result = base;
  for (int i = 1; i < std::fabs(p); ++i)
    result = result * base;
  return (p < 0 ? Expr(1.0) / result : result).value();
}

Value buildGelu(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  bool approximate = layer.config.boolean("approximate", true);
  if (!x)
    return {};
  return approximate ? mt::GeluTanhOp::create(layer.builder, layer.location, x.getType(), x).getResult()
                     : mt::GeluOp::create(layer.builder, layer.location, x.getType(), x).getResult();
}

template <typename Op> Value buildUnaryWith(LayerBuilder &layer, llvm::StringRef name, double otherwise) {
  Value x = layer.toFloat(layer.input());
  double value = layer.config.real(name, otherwise);
  return x ? layer.made<Op>({x}, {layer.number(name, value)}, x.getType()) : x;
}
Value buildLeakyReluFunction(LayerBuilder &layer) {
  return buildUnaryWith<mt::LeakyReluOp>(layer, "negative_slope", 0.2);
}
Value buildEluFunction(LayerBuilder &layer) { return buildUnaryWith<mt::EluOp>(layer, "alpha", 1); }

Value buildReciprocal(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  return x ? (Expr(1.0) / layer.expr(x)).value() : x;
}

// ---- booleans

// A tensor of booleans; numbers are true if they are not 0. Null after an error.
Value flags(LayerBuilder &layer, const Operand &operand) {
  if (!operand.tensor)
    return layer.fail("expected tensors, found something else");
  bool flag = layer.typeOf(operand.tensor).getElementType().isInteger(1);
  return flag ? operand.tensor : (!(layer.expr(layer.toFloat(operand.tensor)) == 0.0)).value();
}

// Logical and, or with `either` logical or.
template <bool either> Value buildLogical(LayerBuilder &layer) {
  if (layer.arguments().size() != 2)
    return layer.fail("expected 2 operands, found " + std::to_string(layer.arguments().size()));
  Value a = flags(layer, layer.arguments()[0]), b = flags(layer, layer.arguments()[1]);
  if (!a || !b)
    return {};
  auto turned = [&](Value x) { return either ? (!layer.expr(x)).value() : x; };
  Value both = layer.inferred<mt::AndOp>({turned(a), turned(b)}, {});
  return both ? turned(both) : both;
}

Value buildLogicalNot(LayerBuilder &layer) {
  Value x = layer.arguments().size() == 1 ? flags(layer, layer.arguments()[0]) : layer.fail("expected 1 operand");
  return x ? (!layer.expr(x)).value() : x;
}

// Whether any element, or all elements, are true.
template <mt::Reduction kind> Value buildAnyFlag(LayerBuilder &layer) {
  Value x = layer.arguments().size() == 1 ? flags(layer, layer.arguments()[0]) : layer.fail("expected 1 operand");
  return reduceAxes(layer, x, [&](ArrayRef<int64_t> axes) {
    return (layer.expr(reduce<kind>(layer, toFloat(layer.expr(x)).value(), axes)) > 0.0).value();
  });
}

Value buildCumsum(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  layer.config.expect("dtype", "float32");
  std::optional<SmallVector<int64_t>> axes = x ? sampleAxes(layer, x, readAxes(layer)) : std::nullopt;
  return axes ? mt::CumsumOp::create(layer.builder, layer.location, x.getType(), x, axes->front(), false).getResult()
              : Value();
}

Value buildStopGradient(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  return x ? mt::StopGradientOp::create(layer.builder, layer.location, x.getType(), x).getResult() : x;
}

Value buildCast(LayerBuilder &layer) {
  layer.config.expect("dtype", "float32");
  return layer.toFloat(layer.input());
}

} // namespace

SmallVector<int64_t> readAxes(LayerBuilder &layer, int64_t otherwise) {
  constexpr llvm::StringRef key = "axis";
  const Json *axis = layer.config.find(key);
  return axis ? layer.config.integers(key, axis->is_array() ? -1 : 1) : SmallVector<int64_t>{otherwise};
}

std::optional<SmallVector<int64_t>> sampleAxes(LayerBuilder &layer, Value x, ArrayRef<int64_t> axes) {
  SmallVector<int64_t> sorted;
  for (int64_t axis : axes) {
    axis += axis < 0 ? rankOf(x) : 0;
    if (axis < 1 || axis >= rankOf(x) || llvm::is_contained(sorted, axis)) {
      layer.fail("expected different axes from 1 to " + std::to_string(rankOf(x) - 1) + ", found " +
                 (axis ? std::to_string(axis) : "the batch axis"));
      return std::nullopt;
    }
    sorted.push_back(axis);
  }
  llvm::sort(sorted);
  return sorted;
}

llvm::ArrayRef<LayerEntry> functionLayers() {
  static constexpr LayerEntry entries[] = {
      {"Sum", buildReduction<reduce<mt::Reduction::sum>>},
      {"Max", buildReduction<reduce<mt::Reduction::max>>},
      {"Min", buildReduction<reduce<mt::Reduction::min>>},
      {"Mean", buildReduction<mean>},
      {"Var", buildReduction<variance>},
      {"Std", buildReduction<deviation>},
      {"Logsumexp", buildReduction<logSumExp>},
      {"Softmax", buildSoftmaxFunction},
      {"Greater", buildCompare<mt::Compare::gt>},
      {"GreaterEqual", buildCompare<mt::Compare::ge>},
      {"Less", buildCompare<mt::Compare::lt>},
      {"LessEqual", buildCompare<mt::Compare::le>},
      {"Equal", buildCompare<mt::Compare::eq>},
      {"NotEqual", buildCompare<mt::Compare::ne>},
      {"Where", buildWhere},
      {"ZerosLike", buildZerosLike},
      {"OnesLike", buildOnesLike},
      {"Clip", buildClip},
      {"Power", buildPower},
      {"Gelu", buildGelu},
      {"LeakyRelu", buildLeakyReluFunction},
      {"Elu", buildEluFunction},
      {"Reciprocal", buildReciprocal},
      {"Cast", buildCast},
      {"LogicalAnd", buildLogical<false>},
      {"LogicalOr", buildLogical<true>},
      {"LogicalNot", buildLogicalNot},
      {"Any", buildAnyFlag<mt::Reduction::max>},
      {"All", buildAnyFlag<mt::Reduction::min>},
      {"Cumsum", buildCumsum},
      {"StopGradient", buildStopGradient},
  };
  return entries;
}

} // namespace mtc::keras
