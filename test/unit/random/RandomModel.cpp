// SPDX-License-Identifier: Apache-2.0
#include "test/unit/random/RandomModel.h"
#include "test/unit/random/Generator.h"

using namespace mlir;
using namespace mlir::mt;
using namespace mtc::test;

Expr Generator::variable(Shape shape, bool varied) {
  static constexpr InitKind kinds[] = {InitKind::ones,          InitKind::constant,      InitKind::glorot_uniform,
                                       InitKind::glorot_normal, InitKind::he_uniform,    InitKind::he_normal,
                                       InitKind::lecun_uniform, InitKind::lecun_normal,  InitKind::normal,
                                       InitKind::uniform,       InitKind::glorot_uniform};
  constexpr int64_t equal = 2, count = std::size(kinds);
  InitKind kind = kinds[varied ? equal + below(count - equal) : below(count)];
  FloatAttr value;
  if (kind == InitKind::constant || kind == InitKind::normal || kind == InitKind::uniform)
    value = builder.getF32FloatAttr(kind == InitKind::constant ? between(-0.5, 0.5) : between(0.1, 0.5));
  std::string name = "layer_" + std::to_string(variables++) + "/w";
  bool frozen = chance(10);
  auto made = VariableOp::create(builder, at, f32(shape), name, kind, value, frozen);
  made.setNoWeightDecay(variables % 7 == 0);
  return e(made);
}

Expr Generator::constant(Shape shape) {
  RankedTensorType type = f32(shape);
  SmallVector<float> elements;
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    elements.push_back(between(-1, 1));
  return make<ConstantOp>(type, DenseElementsAttr::get(type, ArrayRef<float>(elements)));
}

Expr Generator::any() { return values[std::max(below(values.size()), below(values.size()))]; }

Expr Generator::anyLike(const Expr &x) {
  SmallVector<Expr> same;
  for (const Expr &value : values)
    if (width(value) * (value.type().getRank() == 2) == elementsPerRow(x.type()))
      same.push_back(value);
  if (!same.empty() && chance(70))
    return same[below(same.size())];
  return resized(any(), elementsPerRow(x.type()));
}

Expr Generator::resized(const Expr &x, int64_t to) {
  return width(x) == to ? x : tanh(matmul(x, variable({width(x), to})));
}

Expr Generator::cube(const Expr &x) {
  int64_t c = width(x), a = c % 3 == 0 ? 3 : c % 5 == 0 ? 5 : c % 2 == 0 ? 2 : 1, b = c / a;
  if (chance(30))
    std::swap(a, b);
  if (int64_t last = b % 5 == 0 ? 5 : 1; chance(25))
    return reshape(x, {dynamic, a, b / last, last});
  return reshape(x, {dynamic, a, b});
}

// ---- data and the end of a model

Value Generator::input(StringRef name, int64_t width) {
  Tensor tensor({data.samples, width}, 0.0);
  for (double &x : tensor.data)
    x = std::max(between(-1, 1), -0.999); // towards 0 it is no integer but 0, which every limit allows
  data.inputs[name.str()] = std::move(tensor);
  // Of no integers: it says something of a caller's data, and changes nothing.
  IntegerAttr limit = seed % 5 ? IntegerAttr() : builder.getI64IntegerAttr(1 + seed % 9);
  return InputOp::create(builder, at, f32({dynamic, width}), name, limit);
}

Value Generator::target(StringRef name, RankedTensorType type, llvm::function_ref<double()> element) {
  Tensor tensor(concreteShape(type, data.samples));
  for (double &x : tensor.data)
    x = element();
  data.inputs[name.str()] = std::move(tensor);
  bool labels = type.getElementType().isInteger(32) && seed / 16 % 2;
  return TargetOp::create(builder, at, type, name, labels ? builder.getI64IntegerAttr(100) : IntegerAttr());
}

// Now and then the caller has none.
Value Generator::sampleWeight(const std::string &name) {
  Tensor tensor(ArrayRef<int64_t>{data.samples});
  for (double &w : tensor.data)
    w = between(0.1, 2);
  if (chance(75))
    data.inputs[name] = std::move(tensor);
  return SampleWeightOp::create(builder, at, f32({dynamic}), name);
}

// Everything that nobody reads yet, so that nothing is dead.
Expr Generator::joined() {
  Expr sum = resized(values.back(), oneOf<int64_t>({3, 5, 9, 15}));
  for (const Expr &value : ArrayRef<Expr>(values).drop_back())
    if (value.value().use_empty())
      sum = mix(sum, resized(value, width(sum)));
  return sum;
}

void Generator::buildOutputs(const Expr &x) {
  OutputOp::create(builder, at, "y", x.value());
  if (chance(30))
    OutputOp::create(builder, at, "label", unary<ArgmaxOp>(x).value());
  if (chance(30))
    OutputOp::create(builder, at, "box", cube(any()).value());
}

// Of a matrix either way round, with a bias or none; of rows or of lines; of labels or of targets, given or smoothed.
void Generator::buildClassLoss(const Expr &x, const std::string &name) {
  Expr lines = width(x) % 3 == 0 && chance(60) ? reshape(x, {dynamic, 3, width(x) / 3}) : x;
  SmallVector<int64_t> shape(lines.type().getShape().drop_back());
  bool swapped = chance(50);
  // With equal columns the gradient of `x` would be 0 but for rounding, of which LAMB makes a whole step.
  Expr matrix = swapped ? variable({classes, width(lines)}, true) : variable({width(lines), classes}, true);
  Expr logits = matmul(lines, matrix, false, swapped);
  if (chance(50))
    logits = logits + variable({classes});
  // The first sample's first label is one that counts: no step divides by 0.
  bool first = true;
  Value labels = target(name + "_target", RankedTensorType::get(shape, builder.getI32Type()), [&] {
    int64_t label = below(classes);
    return std::exchange(first, false) ? 0 : label;
  });
  Value values;
  int64_t kind = below(3);
  if (kind == 0) {
    values = SparseCategoricalCrossentropyOp::create(builder, at, logits.value(), labels, true);
  } else {
    Value targets = kind == 1 ? make<OneHotOp>(logits.type(), labels).value()
                              : target(name + "_targets", logits.type(), [&] { return between(0, 1); });
    values = CategoricalCrossentropyOp::create(builder, at, logits.value(), targets, true,
                                               llvm::APFloat(chance(50) ? 0.25f : 0.0f));
  }
  // Some labels are ignored: their weights are 0, and the divisor is the number of the others.
  Value counted = chance(50) ? toFloat(e(labels) < double(classes - classes / 4)).value() : Value();
  LossOp::create(builder, at, name, values, counted, counted ? Divisor::weights : Divisor::elements,
                 llvm::APFloat(1.0f));
  Value hits = SparseCategoricalAccuracyOp::create(builder, at, logits.value(), labels);
  MetricOp::create(builder, at, name + "_metric", hits, counted, Finalizer::mean, BetterAttr());
}

void Generator::buildLoss(const Expr &x, const std::string &name) {
  if (classes)
    return buildClassLoss(x, name);
  int64_t c = width(x);
  auto labels = i32({dynamic});
  bool logits = chance(50);
  Expr logit = x * 3.0;
  if (chance(20) && c % 3 == 0) { // a loss for each of three elements
    logit = reshape(logit, {dynamic, 3, c /= 3});
    labels = i32({dynamic, 3});
  }
  Expr p = logits ? logit : unary<SoftmaxOp>(logit), q = logits ? logit : sigmoid(logit);
  std::string targetName = name + "_target";
  Value values, hits;
  switch (seed % 2 ? 3 : seed / 2 % 4) {
  case 0: {
    Value t = target(targetName, labels, [&] { return below(c); });
    values = crossEntropy<SparseCategoricalCrossentropyOp>(p, t, logits);
    hits = seed / 8 % 2 ? criterion<SparseCategoricalAccuracyOp>(p, t)
                        : SparseTopKCategoricalAccuracyOp::create(builder, at, p.value(), t, 1 + below(4)).getResult();
    break;
  }
  case 1: {
    Value t = target(targetName, p.type(), [&] { return between(0, 1); });
    values = crossEntropy<CategoricalCrossentropyOp>(p, t, logits);
    hits = criterion<CategoricalAccuracyOp>(p, t);
    break;
  }
  case 2: {
    Value t = target(targetName, p.type(), [&] { return below(2); });
    values = crossEntropy<BinaryCrossentropyOp>(q, t, logits);
    hits = criterion<BinaryAccuracyOp>(sigmoid(logit), t);
    break;
  }
  default:
    Value t = target(targetName, p.type(), [&] { return between(0.1, 0.9); });
    std::tie(values, hits) = anyCriteria(unary<SoftmaxOp>(logit), t);
  }
  Value weights = chance(40) ? sampleWeight(name + "_weight") : Value();
  Divisor divisor = weights ? oneOf({Divisor::samples, Divisor::elements, Divisor::weights})
                            : oneOf({Divisor::samples, Divisor::elements});
  LossOp::create(builder, at, name, values, weights, divisor, llvm::APFloat(float(oneOf({1.0, 0.5, 2.0}))));
  BetterAttr better =
      seed % 3 ? BetterAttr::get(builder.getContext(), seed % 3 == 1 ? Better::lower : Better::higher) : BetterAttr();
  MetricOp::create(builder, at, name + "_metric", hits, weights, Finalizer::mean, better);
}

RandomModel Generator::make() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(at);
  builder.setInsertionPointToEnd(module->getBody());
  auto model = ModelOp::create(builder, at, "random");
  Block &body = model.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&body);
  data.batch = oneOf<int64_t>({1, 5, 8, 13, 19, 32, 51});
  data.samples = 1 + below(data.batch);
  data.shards = 1;
  while (data.shards * 2 <= std::min<int64_t>(data.batch, 8) && chance(80))
    data.shards *= 2;
  data.seed = 1 + below(1000);

  values.push_back(layerStep(e(input("x", oneOf<int64_t>({3, 5, 9, 15})))));
  if (chance(30))
    values.push_back(layerStep(e(input("x2", oddWidth()))));
  values.push_back(functionStep(values.back()));
  while (body.getOperations().size() < 30 || chance(60))
    values.push_back(step());
  Expr x = joined();
  buildOutputs(x);
  // A variable that learns, whatever the others are.
  x = x + make<VariableOp>(f32({width(x)}), "bias", InitKind::zeros, FloatAttr(), false);
  if (chance(30))
    RegularizerOp::create(builder, at, x.value(), llvm::APFloat(float(between(0.01, 0.1))),
                          llvm::APFloat(float(between(0.01, 0.1))));
  bool two = chance(25);
  buildLoss(x, two ? "first" : "loss");
  if (two)
    buildLoss(resized(any(), oneOf<int64_t>({2, 3, 6})), "second");
  buildOptimizer();
  return {std::move(module), std::move(data)};
}

RandomModel mtc::test::makeRandomModel(MLIRContext &context, uint32_t seed, int64_t classes) {
  return Generator(context, seed, classes).make();
}
