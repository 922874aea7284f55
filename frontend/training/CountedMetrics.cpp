// SPDX-License-Identifier: Apache-2.0
//
// Metrics that count true and false predictions: precision, recall, F1, areas under curves, rates at a bound.
#include "frontend/training/Criteria.h"

#include <limits>
#include <tuple>

using namespace mlir;
using llvm::StringRef;
using mt::Expr;

namespace mtc::training {
namespace {

constexpr int64_t maxThresholds = 1 << 16;

// 1 if the target is not 0, else 0.
Expr actual(Criterion &c) { return toFloat(!(c.truth() == 0.0)); }

Expr row(Criterion &c, ArrayRef<float> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, c.builder.getF32Type());
  return Expr(c.builder, c.location,
              mt::ConstantOp::create(c.builder, c.location, type, DenseElementsAttr::get(type, values)));
}

// 1 if the prediction is above the threshold or, without a threshold, the largest of the classes.
std::optional<Expr> predicted(Criterion &c) {
  Expr p = c.prediction();
  const Json *threshold = c.config.find("threshold");
  if (!threshold)
    return toFloat(p >= maxLast(p)) * toFloat(abs(p) > 1e-9);
  if (!threshold->is_number()) {
    c.config.error("expected threshold to be one number or none, found " + describe(*threshold));
    return {};
  }
  return toFloat(p > threshold->get<double>());
}

constexpr double lowest = -1e10; // what Keras puts in the place of predictions that are not among the top k

Expr iota(Criterion &c, int64_t count) {
  SmallVector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(i));
  return row(c, values);
}

// The predictions, [?, ..., C], with `lowest` but for the k largest of a line; of equal ones the first come first.
Expr largest(Criterion &c, const Expr &p, int64_t k) {
  SmallVector<int64_t> shape(p.type().getShape());
  int64_t classes = shape.back();
  SmallVector<int64_t> column(shape), across(shape);
  column.push_back(1);
  across.insert(across.end() - 1, 1);
  Expr mine = reshape(p, column), others = reshape(p, across);
  Expr before = toFloat(reshape(iota(c, classes), {classes, 1}) > iota(c, classes));
  Expr above = toFloat(others > mine) + toFloat(others == mine) * before;
  Expr isTop = squeezeLast(sumLast(above)) < static_cast<double>(k);
  return select(isTop, p, lowest);
}

// Reads `top_k` and `class_id`: leaves the predictions and the targets that count. False after an error.
bool choosePredictions(Criterion &c) {
  auto type = cast<RankedTensorType>(c.predictions.getType());
  int64_t classes = type.getShape().back(), k = c.config.find("top_k") ? c.config.integer("top_k") : 0,
          id = c.config.find("class_id") ? c.config.integer("class_id") : -1;
  if (!c.config.find("top_k") && !c.config.find("class_id"))
    return true;
  constexpr int64_t most = 4096;
  if (classes < 2 || classes > most)
    c.config.error("expected predictions of 2 to 4096 classes with top_k or class_id, found " +
                   std::to_string(classes));
  else if (c.config.find("top_k") && (k < 1 || k > classes))
    c.config.error("expected top_k from 1 to " + std::to_string(classes) + ", found " + std::to_string(k));
  else if (c.config.find("class_id") && (id < 0 || id >= classes))
    c.config.error("expected class_id from 0 to " + std::to_string(classes - 1) + ", found " + std::to_string(id));
  else if (c.weights)
    c.config.error("expected weights of samples with top_k or class_id, found weights of elements");
  if (c.config.failed())
    return false;
  if (k)
    c.predictions = largest(c, c.prediction(), k).value();
  if (id < 0)
    return true;
  for (Value *value : {&c.predictions, &c.targets}) {
    auto from = cast<RankedTensorType>(value->getType());
    SmallVector<int64_t> shape(from.getShape()), starts(shape.size() - 1, 0);
    shape.back() = 1;
    starts.back() = id;
    *value = mt::SliceOp::create(c.builder, c.location, from.clone(shape), *value, starts,
                                 ArrayRef<int64_t>(shape).drop_front(), ArrayRef<int64_t>{});
  }
  return true;
}

// The thresholds of a metric; empty after an error.
SmallVector<double> readThresholds(Criterion &c) {
  const Json *given = c.config.find("thresholds");
  Json thresholds = !given              ? Json::array({c.config.find("top_k") ? lowest : 0.5})
                    : given->is_array() ? *given
                                        : Json::array({*given});
  if (thresholds.empty() || !llvm::all_of(thresholds, [](const Json &each) { return each.is_number(); })) {
    c.config.error("expected thresholds to be numbers or none, found " + describe(*given));
    return {};
  }
  // Keras then counts by intervals, and a prediction of 0 counts as above the threshold 0
  bool even = thresholds.size() > 2;
  for (auto [i, threshold] : llvm::enumerate(thresholds))
    even &= std::abs(threshold.get<double>() - double(i) / double(thresholds.size() - 1)) < kerasEpsilon;
  if (even) {
    c.config.error("expected thresholds that are not evenly spaced from 0 to 1, found " + describe(*given));
    return {};
  }
  SmallVector<double> numbers;
  for (const Json &threshold : thresholds)
    numbers.push_back(threshold.get<double>());
  return numbers;
}

std::string partOf(size_t i, size_t count) { return count > 1 ? "/" + std::to_string(i) : ""; }

// Elements with their weights, where they have some.
Expr weighted(Criterion &c, const Expr &a) { return c.weights ? a * a.make(c.weights) : a; }

// Precision or recall, for one threshold or for each of a list.
SmallVector<Measure> buildRate(Criterion &c, bool precision) {
  SmallVector<double> thresholds = readThresholds(c);
  if (thresholds.empty() || !choosePredictions(c))
    return {};
  Expr y = actual(c);
  SmallVector<Measure> measures;
  for (auto [i, threshold] : llvm::enumerate(thresholds)) {
    Expr p = toFloat(c.prediction() > threshold);
    const Expr &hits = precision ? y : p, &of = precision ? p : y;
    measures.push_back({hits.value(), weighted(c, of).value(), mt::Finalizer::mean, partOf(i, thresholds.size())});
  }
  return measures;
}

// The number of predictions that are true or false, and positive or negative, for one threshold or each of a list.
SmallVector<Measure> buildCount(Criterion &c, bool isTrue, bool isPositive) {
  SmallVector<double> thresholds = readThresholds(c);
  if (thresholds.empty())
    return {};
  Expr y = actual(c);
  SmallVector<Measure> measures;
  for (auto [i, threshold] : llvm::enumerate(thresholds)) {
    Expr p = toFloat(c.prediction() > threshold);
    Expr counted = weighted(c, (isPositive ? p : 1.0 - p) * (isTrue == isPositive ? y : 1.0 - y));
    int64_t rows = counted.type().getShape().front(), each = mt::elementsPerRow(counted.type());
    Value sums = reshape(sumLast(reshape(counted, {rows, each})), {rows}).value();
    measures.push_back({sums, Value(), mt::Finalizer::sum, partOf(i, thresholds.size()),
                        isTrue ? mt::Better::higher : mt::Better::lower});
  }
  return measures;
}

// (1 + b^2) tp / (predicted + b^2 actual) of one class, or of all classes: a mean with these weights.
Measure fBetaOf(const Expr &p, const Expr &y, double beta, std::string part = "") {
  Expr actual = beta == 1 ? y : y * (beta * beta);
  return {(p * y).value(), (p + actual).value(), mt::Finalizer::mean, std::move(part)};
}

SmallVector<Measure> buildFBeta(Criterion &c, bool isF1) {
  std::string average = c.config.text("average", "none");
  if (c.weights)
    c.config.error("expected weights of samples, found weights of elements");
  double beta = isF1 ? 1 : c.config.real("beta", 1);
  std::optional<Expr> p = predicted(c);
  if (!p)
    return {};
  Expr y = actual(c);
  if (average == "micro")
    return {fBetaOf(*p, y, beta)};
  if (p->type().getRank() != 2) {
    c.config.error("expected predictions of 2 axes, found " + std::to_string(p->type().getRank()));
    return {};
  }
  int64_t classes = p->type().getShape().back(), rows = p->type().getShape().front();
  if (average == "none") { // one metric per class
    SmallVector<Measure> measures;
    for (int64_t i = 0; i < classes; ++i) {
      measures.push_back(fBetaOf(columnOf(*p, i), columnOf(y, i), beta, "/" + std::to_string(i)));
    }
    return measures;
  }
  if (average != "macro" && average != "weighted") {
    c.config.error("expected average to be none, micro, macro or weighted, found " + average);
    return {};
  }
  SmallVector<Value> parts;
  for (const Expr &part : {*p * y, *p, y})
    parts.push_back(reshape(part, {rows, 1, classes}).value());
  auto type = RankedTensorType::get({rows, 3, classes}, c.builder.getF32Type());
  Value counts = mt::ConcatOp::create(c.builder, c.location, type, parts, 1);
  Measure measure = {counts, Value(), average == "macro" ? mt::Finalizer::f1_macro : mt::Finalizer::f1_weighted};
  if (beta != 1)
    measure.parameters.push_back(beta);
  return {measure};
}

// The thresholds without the first, which is below all predictions, and the last, which is above all.
std::optional<SmallVector<double>> innerThresholds(Criterion &c) {
  const Json *thresholds = c.config.find("thresholds");
  int64_t count = c.config.integer("num_thresholds", 200);
  if (count < 2 || count > maxThresholds) {
    c.config.error("expected 2 to " + std::to_string(maxThresholds) + " thresholds, found " + std::to_string(count));
    return {};
  }
  SmallVector<double> inner;
  if (!thresholds)
    for (int64_t i = 1; i < count - 1; ++i)
      inner.push_back(static_cast<double>(i) / static_cast<double>(count - 1));
  if (!thresholds)
    return inner;
  for (const Json &threshold : *thresholds)
    if (thresholds->is_array() && threshold.is_number())
      inner.push_back(threshold.get<double>());
  if (!thresholds->is_array() || inner.size() != thresholds->size() || inner.empty() || inner.size() > maxThresholds) {
    c.config.error("expected thresholds to be a list of numbers or none, found " + describe(*thresholds));
    return {};
  }
  llvm::sort(inner);
  return inner;
}

// The number of the interval, of T - 1 of equal lengths from 0 to 1, in which a prediction lies. A bound belongs to the
// interval before it, and 0 to number -1.
Expr intervalOf(const Expr &p, double last) { return -floor(-(minimum(maximum(p, 0.0), 1.0) * last)) - 1.0; }

// The numbers of true and of false positives, [?, 2, T], or of each element, [?, E, 2, T], above thresholds, for which
// `over` is 1: [?, E, T].
Expr countsAbove(Criterion &c, const Expr &over, bool ofElements) {
  Expr y = actual(c);
  int64_t rows = y.type().getShape().front(), each = mt::elementsPerRow(y.type()),
          thresholds = over.type().getShape().back();
  // [?, E, 2]: whether the target is 1, and whether it is 0.
  Expr kinds = row(c, {0, 1}) + reshape(y, {rows, each, 1}) * row(c, {1, -1});
  if (c.weights)
    kinds = kinds * reshape(kinds.make(c.weights), {rows, each, 1});
  Expr counts = reshape(kinds, {rows, each, 2, 1}) * reshape(over, {rows, each, 1, thresholds});
  return ofElements ? counts : reshape(sumOver(counts, {1}), {rows, 2, thresholds});
}

// The best of one rate where another one is at least a number.
SmallVector<Measure> buildBound(Criterion &c, llvm::StringRef bound, mt::Finalizer finalizer) {
  int64_t count = c.config.integer("num_thresholds", 200);
  double least = c.config.real(bound);
  if (count < 1 || count > maxThresholds)
    c.config.error("expected 1 to " + std::to_string(maxThresholds) + " thresholds, found " + std::to_string(count));
  if (c.config.failed() || !choosePredictions(c))
    return {};
  Expr p = c.prediction();
  int64_t rows = p.type().getShape().front(), each = mt::elementsPerRow(p.type());
  p = reshape(p, {rows, each, 1});
  // The first column counts all predictions. With one threshold it is 0.5, else they are evenly spaced from 0 to 1.
  std::optional<Expr> over;
  if (count == 1) {
    over = toFloat(p > row(c, {-std::numeric_limits<float>::infinity(), 0.5f}));
  } else {
    SmallVector<float> least = {-2};
    for (int64_t i = 0; i < count; ++i)
      least.push_back(static_cast<float>(i));
    over = toFloat(intervalOf(p, static_cast<double>(count - 1)) >= row(c, least));
  }
  Measure measure = {countsAbove(c, *over, false).value(), Value(), finalizer};
  measure.parameters.push_back(least);
  return {measure};
}

// 1 if a prediction, [?, E, 1], is above a threshold: [?, E, T]. For equally spaced thresholds, Keras compares the
// number of the interval, to which the threshold itself belongs.
Expr above(Criterion &c, const Expr &p, ArrayRef<double> inner) {
  auto last = static_cast<double>(inner.size() + 1);
  bool even = true;
  for (auto [i, threshold] : llvm::enumerate(inner))
    even &= std::abs(threshold - static_cast<double>(i + 1) / last) < 1e-8;
  SmallVector<float> thresholds;
  if (even) {
    for (size_t i = 0; i < inner.size() + 2; ++i)
      thresholds.push_back(static_cast<float>(i));
    return toFloat(maximum(intervalOf(p, last), 0.0) >= row(c, thresholds));
  }
  thresholds.push_back(static_cast<float>(-kerasEpsilon));
  thresholds.append(inner.begin(), inner.end());
  thresholds.push_back(static_cast<float>(1 + kerasEpsilon));
  return toFloat(p > row(c, thresholds));
}

// Weights of the elements along the last axis, a list or an array; empty: none, or an error.
SmallVector<double> readLabelWeights(Criterion &c) {
  const Json *given = c.config.find("label_weights"), *config = given ? member(*given, "config") : nullptr,
             *list = config ? member(*config, "value") : given;
  SmallVector<double> weights;
  if (!given)
    return weights;
  int64_t labels = cast<RankedTensorType>(c.predictions.getType()).getShape().back();
  if (list && list->is_array())
    for (const Json &each : *list)
      if (each.is_number())
        weights.push_back(each.get<double>());
  if (!list || weights.size() != list->size() || static_cast<int64_t>(weights.size()) != labels)
    c.config.error("expected label_weights of " + std::to_string(labels) + " numbers, found " + describe(*given));
  return weights;
}

SmallVector<Measure> buildArea(Criterion &c) {
  std::string curve = c.config.text("curve", "ROC"), method = c.config.text("summation_method", "interpolation");
  if (curve != "ROC" && curve != "PR" && curve != "PRGAIN")
    c.config.error("expected curve to be ROC, PR or PRGAIN, found " + curve);
  if (method != "interpolation" && method != "minoring" && method != "majoring")
    c.config.error("expected summation_method to be interpolation, minoring or majoring, found " + method);
  bool labels = c.config.boolean("multi_label", false), logits = c.config.boolean("from_logits", false);
  c.config.ignore({"num_labels"});
  std::optional<SmallVector<double>> inner = innerThresholds(c);
  Expr p = c.prediction();
  if (labels && p.type().getRank() != 2)
    c.config.error("expected predictions of 2 axes with multi_label, found " + std::to_string(p.type().getRank()));
  SmallVector<double> labelWeights = readLabelWeights(c);
  if (!inner || c.config.failed())
    return {};
  int64_t rows = p.type().getShape().front(), each = mt::elementsPerRow(p.type());
  if (!labelWeights.empty() && !labels) { // weights of elements
    SmallVector<float> weights(labelWeights.begin(), labelWeights.end());
    Expr every = row(c, weights);
    c.weights = (c.weights ? every.make(c.weights) * every : broadcastTo(every, p.type())).value();
    labelWeights.clear();
  }
  Expr over = above(c, reshape(logits ? sigmoid(p) : p, {rows, each, 1}), *inner);
  Measure measure = {countsAbove(c, over, labels).value(), Value(),
                     curve == "PR"    ? mt::Finalizer::precision_recall
                     : curve == "ROC" ? mt::Finalizer::roc
                                      : mt::Finalizer::precision_recall_gain};
  double height = method == "interpolation" ? 0 : method == "minoring" ? 1 : 2;
  if (height != 0 || !labelWeights.empty())
    measure.parameters.push_back(height);
  llvm::append_range(measure.parameters, labelWeights);
  return {measure};
}

} // namespace

bool isCounted(StringRef name) {
  return llvm::any_of(countedMetrics, [&](const char *known) { return plainName(known) == name; });
}

bool takesLabels(StringRef name, const Json &config) {
  const Json *sparseTargets = member(config, "sparse_y_true"), *sparse = member(config, "sparse_y_pred");
  bool labels = (name == "iou" || name == "meaniou") && (!sparseTargets || *sparseTargets == true);
  return labels && sparse && *sparse == false;
}

SmallVector<Measure> buildCounted(StringRef name, Criterion &c) {
  static constexpr std::tuple<const char *, const char *, mt::Finalizer> bounds[] = {
      {"sensitivityatspecificity", "specificity", mt::Finalizer::sensitivity_at_specificity},
      {"specificityatsensitivity", "sensitivity", mt::Finalizer::specificity_at_sensitivity},
      {"precisionatrecall", "recall", mt::Finalizer::precision_at_recall},
      {"recallatprecision", "precision", mt::Finalizer::recall_at_precision}};
  for (auto [known, bound, finalizer] : bounds)
    if (name == known)
      return buildBound(c, bound, finalizer);
  if (name == "auc")
    return buildArea(c);
  if (name == "f1score" || name == "fbetascore")
    return buildFBeta(c, name == "f1score");
  if (name == "precision" || name == "recall")
    return buildRate(c, name == "precision");
  if (name.ends_with("positives") || name.ends_with("negatives"))
    return buildCount(c, name.starts_with("true"), name.ends_with("positives"));
  if (name.ends_with("iou"))
    return buildIou(name, c);
  return name == "r2score" ? buildDetermination(c) : buildCorrelation(c, name == "concordancecorrelation");
}

} // namespace mtc::training
