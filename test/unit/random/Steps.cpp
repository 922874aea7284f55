// SPDX-License-Identifier: Apache-2.0
#include "test/unit/random/Generator.h"

using namespace mlir;
using namespace mlir::mt;
using namespace mtc::test;

Expr Generator::anyReduction(const Expr &x, Shape dims) {
  Reduction kind = static_cast<Reduction>(below(3));
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= x.type().getDimSize(dim);
  Expr reduced = reduce(kind, x, dims);
  return kind == Reduction::sum ? reduced * (1.0 / count) : reduced;
}

Expr Generator::unaryStep(const Expr &x) {
  switch (below(15)) {
  case 0:
    return mix(x, -x);
  case 1:
    return mix(x, abs(x));
  case 2:
    return mix(x, sign(x + 0.0123));
  case 3:
    return mix(x, square(x));
  case 4:
    return mix(x, exp(x));
  case 5:
    return mix(x, log(abs(x) + 0.5));
  case 6:
    return mix(x, log1p(square(x)));
  case 7:
    return mix(x, sqrt(square(x) + 0.25));
  case 8:
    return mix(x, unary<RsqrtOp>(square(x) + 0.5));
  case 9:
    return tanh(x);
  case 10:
    return mix(x, sigmoid(x));
  case 11:
    return mix(x, unary<ReluOp>(x));
  case 12:
    return mix(x, unary<ErfOp>(x));
  case 13:
    return mix(x, erfInv(tanh(x) * 0.8));
  default:
    return mix(x, unary<FloorOp>(x * 3.7 + 0.123));
  }
}

Expr Generator::binaryStep(const Expr &x) {
  int64_t kind = below(5);
  Expr v = kind == 0   ? variable({})
           : kind == 1 ? variable({width(x)})
           : kind == 2 ? variable({1, width(x)})
           : kind == 3 ? reshape(anyLike(x), x.type().getShape())
                       : unsqueezeLast(anyReduction(x, {x.type().getRank() - 1}));
  switch (below(7)) {
  case 0:
    return tanh(x + v);
  case 1:
    return tanh(v - x);
  case 2:
    return mix(x, x * v);
  case 3:
    return mix(x, x / (abs(v) + 0.5));
  case 4:
    return tanh(maximum(x, v) + minimum(x * 0.5, v) + v * 0.25);
  case 5:
    return tanh(minimum(x, v) + maximum(x * 0.5, v) + v * 0.25);
  default:
    return mix(x, pow(sigmoid(x) + 0.5, v));
  }
}

Expr Generator::layerStep(const Expr &x) {
  int64_t from = width(x), to = oddWidth();
  bool swapped = chance(50);
  Expr w = swapped ? variable({to, from}) : variable({from, to});
  if (chance(30)) {
    w = transpose(w, {1, 0});
    swapped = !swapped;
  }
  return tanh(matmul(x, w, false, swapped) + variable({to}));
}

Expr Generator::maskStep(const Expr &x) {
  Compare kind = static_cast<Compare>(below(6));
  Expr mask = compare(kind, x, constant({width(x)}));
  if (chance(50))
    mask = make<AndOp>(mask.value(), compare(Compare::gt, x, constant({})).value());
  if (chance(50))
    mask = !mask;
  if (chance(30))
    return mix(x, toFloat(mask));
  if (chance(30)) {
    Expr integers = make<CastOp>(x.type().clone(builder.getI32Type()), (x * 2.9 + 0.0317).value());
    return mix(x, toFloat(integers + 1));
  }
  return tanh(select(mask, x, x * between(0.1, 0.9)));
}

// Turned axes, of rows or of a variable.
Expr Generator::shapeStep(const Expr &x) {
  if (chance(30)) {
    Expr turned = transpose(variable({3, width(x), 5}), oneOf<Shape>({{2, 0, 1}, {0, 2, 1}, {2, 1, 0}, {1, 0, 2}}));
    return mix(x, anyReduction(reshape(turned, {15, width(x)}), {0}));
  }
  Expr box = cube(x);
  SmallVector<int64_t> order{0, 1, 2};
  if (box.type().getRank() == 4)
    order.push_back(3);
  std::shuffle(order.begin() + 1, order.end(), random);
  return mix(x, reshape(transpose(box, order), x.type().getShape()));
}

// Of [?, ..., a, b] over the a places: keys and values of their own, perhaps for several heads of queries.
Expr Generator::attention(const Expr &box) {
  int64_t places = box.type().getShape().take_back(2)[0], channels = width(box);
  int64_t heads = channels % 3 == 0 ? 3 : channels % 2 == 0 ? 2 : 1, keyHeads = chance(50) ? heads : 1;
  auto projected = [&] { return matmul(box, variable({channels, channels / heads * keyHeads})).value(); };
  Value keys = projected(), values = projected(), mask;
  if (chance(30)) {
    SmallVector<bool> seen;
    for (int64_t i = 0; i < places * places; ++i)
      seen.push_back(chance(70));
    auto type = RankedTensorType::get({places, places}, builder.getI1Type());
    mask = ConstantOp::create(builder, at, DenseElementsAttr::get(type, ArrayRef<bool>(seen)));
  }
  auto unit = [&](bool given) { return given ? builder.getUnitAttr() : UnitAttr(); };
  bool drops = chance(40);
  std::string stream = "layer_attention_" + std::to_string(streams++);
  return make<AttentionOp>(box.value(), keys, values, mask, Value(), Value(), builder.getI64IntegerAttr(heads),
                           builder.getI64IntegerAttr(keyHeads), unit(chance(50)),
                           chance(50) ? builder.getI64IntegerAttr(1 + below(4)) : IntegerAttr(),
                           chance(50) ? builder.getF32FloatAttr(0.75f) : FloatAttr(),
                           drops ? builder.getStringAttr(stream) : StringAttr(),
                           drops ? builder.getF32FloatAttr(0.25f) : FloatAttr());
}

Expr Generator::attentionStep(const Expr &x) { return mix(x, reshape(attention(cube(x)), x.type().getShape())); }

Expr Generator::productStep(const Expr &x) {
  Expr box = cube(x);
  if (box.type().getRank() == 4)
    box = reshape(box, {dynamic, box.type().getDimSize(1), box.type().getDimSize(2) * box.type().getDimSize(3)});
  int64_t a = box.type().getDimSize(1), b = box.type().getDimSize(2);
  auto back = [&](const Expr &y) { return mix(x, reshape(y, x.type().getShape())); };
  switch (below(5)) {
  case 0: { // [?, a, b] . [?, b, a] . [?, a, b]
    Expr inner = matmul(box, box, false, true);
    return back(matmul(inner, box, chance(50), false) * (0.5 / a));
  }
  case 1: { // [?, a, b]^T . [?, a, b], then . [?, b, a]
    Expr inner = matmul(box, box, true, false);
    return back(transpose(matmul(inner, box, chance(50), true), {0, 2, 1}) * (0.5 / a));
  }
  case 2: // one matrix for all rows
    return back(matmul(box, variable({b, b}), false, chance(50)));
  case 3: { // weights that are a product, without a batch
    bool left = chance(50), right = chance(50);
    int64_t middle = oddWidth();
    Expr first = left ? variable({middle, width(x)}) : variable({width(x), middle});
    Expr second = right ? variable({7, middle}) : variable({middle, 7});
    return tanh(matmul(x, matmul(first, second, left, right)));
  }
  default: { // the covariance of two values over the batch
    Expr other = anyLike(x), n = make<BatchSizeOp>(f32({}));
    return mix(x, matmul(x, matmul(other, x, true) / n, false, chance(50)) * (1.0 / width(x)));
  }
  }
}

Expr Generator::reductionStep(const Expr &x) {
  if (chance(40)) {
    Expr reduced = unsqueezeLast(anyReduction(x, {1}));
    return mix(x, chance(50) ? broadcastTo(reduced, x.type()) : reduced);
  }
  Expr box = cube(x);
  int64_t rank = box.type().getRank();
  SmallVector<int64_t> dims, kept(box.type().getShape());
  for (int64_t axis = 1; axis < rank; ++axis)
    if (chance(50) || (axis + 1 == rank && dims.empty())) {
      dims.push_back(axis);
      kept[axis] = 1;
    }
  Expr reduced = reshape(anyReduction(box, dims), kept);
  return mix(x, reshape(box * reduced, x.type().getShape()));
}

Expr Generator::compositeStep(const Expr &x) {
  switch (below(5)) {
  case 0:
    return mix(x, unary<SoftmaxOp>(x * 2.0));
  case 1:
    return mix(x, unary<LogSoftmaxOp>(x) * 0.3);
  case 2:
    return mix(x, unary<StopGradientOp>(x * x));
  default:
    Expr label = unary<ArgmaxOp>(x);
    if (chance(50))
      return mix(x, make<OneHotOp>(x.type(), label.value()));
    return mix(x, unsqueezeLast(toFloat(label)) * 0.1);
  }
}

Expr Generator::sourceStep(const Expr &x) {
  if (chance(20))
    return threefryStep(x);
  switch (below(5)) {
  case 0:
    return mix(x, make<IotaOp>(f32({width(x)}), 0) * (1.0 / width(x)));
  case 1:
    return mix(x, constant({width(x)}));
  case 2:
    return mix(x, make<RandomUniformOp>(f32({width(x)}), "noise_" + std::to_string(streams++), Value()));
  case 3: {
    Expr grid = toFloat(make<IotaOp>(i32({3, width(x)}), below(2)));
    return mix(x, anyReduction(grid * variable({3, 1}), {0}) * (1.0 / width(x)));
  }
  default: {
    Expr u = make<RandomUniformOp>(x.type(), "drop_" + std::to_string(streams++), Value());
    return tanh(select(u >= 0.25, x * (1 / 0.75), 0.0) + x * 0.25);
  }
  }
}

// Random numbers of a key, the same for all samples, or of counters that the samples have.
Expr Generator::threefryStep(const Expr &x) {
  auto kind = static_cast<ThreefryResult>(below(4));
  auto word = [&] { return make<CastOp>(i32({}), (constant({}) * double(1 << 30)).value()).value(); };
  Expr count = make<IotaOp>(i32({width(x)}), 0);
  if (chance(50))
    count = count + make<CastOp>(x.type().clone(builder.getI32Type()), (x * 2.9 + 0.0317).value());
  Expr numbers = e(ThreefryOp::create(builder, at, kind, word(), word(), count.value()));
  return mix(x, kind == ThreefryResult::uniform ? numbers : toFloat(numbers) * 0x1p-31);
}

// Work on variables alone.
Expr Generator::parameterStep(const Expr &x) {
  Expr table = variable({oneOf<int64_t>({1, 3, 5}), width(x)});
  for (int64_t steps = 1 + below(3); steps > 0; --steps)
    table = oneOf<bool>({true, false}) ? unaryStep(table) : compositeStep(table);
  if (chance(30)) // a row of the table that the value chooses
    return mix(x,
               matmul(make<OneHotOp>(f32({dynamic, table.type().getDimSize(0)}), unary<ArgmaxOp>(x).value()), table));
  return mix(x, anyReduction(table, {0}));
}

// A sum over the batch in the middle of the forward pass, as batch statistics are.
Expr Generator::batchStep(const Expr &x) {
  Expr n = make<BatchSizeOp>(f32({}));
  Expr centered = x - reduce(Reduction::sum, x, {0}) / n;
  if (chance(50))
    return mix(x, centered);
  return mix(x, centered / sqrt(reduce(Reduction::sum, square(centered), {0}) / n + 0.1));
}

Expr Generator::step() {
  using Method = Expr (Generator::*)(const Expr &);
  // Twice: more often.
  static constexpr Method flat[] = {
      &Generator::layerStep,       &Generator::shapeStep,     &Generator::productStep,   &Generator::reductionStep,
      &Generator::reductionStep,   &Generator::parameterStep, &Generator::batchStep,     &Generator::convolutionStep,
      &Generator::convolutionStep, &Generator::poolStep,      &Generator::movementStep,  &Generator::movementStep,
      &Generator::lookupStep,      &Generator::takeStep,      &Generator::attentionStep, &Generator::scanStep};
  static constexpr Method anyRank[] = {
      &Generator::unaryStep,         &Generator::unaryStep, &Generator::unaryStep,  &Generator::binaryStep,
      &Generator::binaryStep,        &Generator::maskStep,  &Generator::sourceStep, &Generator::compositeStep,
      &Generator::functionStep,      &Generator::noiseStep, &Generator::noiseStep,  &Generator::normalizationStep,
      &Generator::normalizationStep, &Generator::cumsumStep};
  Expr x = any();
  if (chance(40))
    return (this->*flat[below(std::size(flat))])(x);
  Method method = anyRank[below(std::size(anyRank))];
  if (chance(75))
    return (this->*method)(x);
  return reshape((this->*method)(cube(x)), x.type().getShape());
}
