// SPDX-License-Identifier: Apache-2.0
//
// Metrics that count true and false predictions: precision, recall, F1, areas under curves.
#include "frontend/training/Criteria.h"

using namespace mlir;
using mt::Expr;

namespace mtc::training {
namespace {

constexpr int64_t maxThresholds = 1 << 16;
constexpr double epsilon = 1e-7; // keras.config.epsilon()

Expr predictionsOf(Criterion &c) { return Expr(c.builder, c.location, c.predictions); }

// 1 if the target is not 0, else 0.
Expr actual(Criterion &c) { return toFloat(!(Expr(c.builder, c.location, c.targets) == 0.0)); }

Expr row(Criterion &c, ArrayRef<float> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, c.builder.getF32Type());
  return Expr(c.builder, c.location,
              mt::ConstantOp::create(c.builder, c.location, type, DenseElementsAttr::get(type, values)));
}

Expr reshape(const Expr &a, ArrayRef<int64_t> shape) {
  return a.make(mt::ReshapeOp::create(a.getBuilder(), a.getLocation(), a.type().clone(shape), a.value()));
}

// 1 if the prediction is above the threshold or, without a threshold, the largest of the classes.
std::optional<Expr> predicted(Criterion &c) {
  Expr p = predictionsOf(c);
  const Json *threshold = c.config.find("threshold");
  if (!threshold)
    return toFloat(p >= maxLast(p)) * toFloat(abs(p) > 1e-9);
  if (!threshold->is_number()) {
    c.config.error("expected threshold to be one number or none, found " + describe(*threshold));
    return {};
  }
  return toFloat(p > threshold->get<double>());
}

// Precision or recall, for one threshold or for each of a list.
SmallVector<Measure> buildRate(Criterion &c, bool precision) {
  c.config.expectAbsent({"top_k", "class_id"});
  const Json *given = c.config.find("thresholds");
  Json thresholds = !given ? Json::array({0.5}) : given->is_array() ? *given : Json::array({*given});
  if (thresholds.empty() || !llvm::all_of(thresholds, [](const Json &each) { return each.is_number(); })) {
    c.config.error("expected thresholds to be numbers or none, found " + describe(*given));
    return {};
  }
  // Keras then counts by intervals, and a prediction of 0 counts as above the threshold 0
  bool even = thresholds.size() > 2;
  for (auto [i, threshold] : llvm::enumerate(thresholds))
    even &= std::abs(threshold.get<double>() - double(i) / double(thresholds.size() - 1)) < epsilon;
  if (even) {
    c.config.error("expected thresholds that are not evenly spaced from 0 to 1, found " + describe(*given));
    return {};
  }
  Expr y = actual(c);
  SmallVector<Measure> measures;
  for (auto [i, threshold] : llvm::enumerate(thresholds)) {
    Expr p = toFloat(predictionsOf(c) > threshold.get<double>());
    Value hits = precision ? y.value() : p.value(), of = precision ? p.value() : y.value();
    measures.push_back({hits, of, mt::Finalizer::mean, thresholds.size() > 1 ? "/" + std::to_string(i) : ""});
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
      auto column = [&](const Expr &all) {
        auto type = RankedTensorType::get({rows, 1}, c.builder.getF32Type());
        return all.make(mt::SliceOp::create(c.builder, c.location, type, all.value(), ArrayRef<int64_t>{i},
                                            ArrayRef<int64_t>{1}, ArrayRef<int64_t>{}));
      };
      measures.push_back(fBetaOf(column(*p), column(y), beta, "/" + std::to_string(i)));
    }
    return measures;
  }
  if (average != "macro" && average != "weighted") {
    c.config.error("expected average to be none, micro, macro or weighted, found " + average);
    return {};
  }
  if (beta != 1) {
    c.config.error("expected average to be none or micro with a beta that is not 1, found " + average);
    return {};
  }
  SmallVector<Value> parts;
  for (const Expr &part : {*p * y, *p, y})
    parts.push_back(reshape(part, {rows, 1, classes}).value());
  auto type = RankedTensorType::get({rows, 3, classes}, c.builder.getF32Type());
  Value counts = mt::ConcatOp::create(c.builder, c.location, type, parts, 1);
  return {{counts, Value(), average == "macro" ? mt::Finalizer::f1_macro : mt::Finalizer::f1_weighted, ""}};
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
    Expr interval = -floor(-(minimum(maximum(p, 0.0), 1.0) * last)) - 1.0;
    return toFloat(maximum(interval, 0.0) >= row(c, thresholds));
  }
  thresholds.push_back(static_cast<float>(-epsilon));
  thresholds.append(inner.begin(), inner.end());
  thresholds.push_back(static_cast<float>(1 + epsilon));
  return toFloat(p > row(c, thresholds));
}

SmallVector<Measure> buildArea(Criterion &c) {
  std::string curve = c.config.text("curve", "ROC");
  if (curve != "ROC" && curve != "PR")
    c.config.error("expected curve to be ROC or PR, found " + curve);
  c.config.expect("summation_method", "interpolation");
  c.config.expectAbsent({"label_weights"});
  bool labels = c.config.boolean("multi_label", false), logits = c.config.boolean("from_logits", false);
  c.config.ignore({"num_labels"});
  std::optional<SmallVector<double>> inner = innerThresholds(c);
  Expr p = predictionsOf(c), y = actual(c);
  if (labels && p.type().getRank() != 2)
    c.config.error("expected predictions of 2 axes with multi_label, found " + std::to_string(p.type().getRank()));
  if (!inner || c.config.failed())
    return {};
  int64_t rows = p.type().getShape().front(), each = mt::elementsPerRow(p.type()),
          thresholds = static_cast<int64_t>(inner->size()) + 2;
  Expr over = above(c, reshape(logits ? sigmoid(p) : p, {rows, each, 1}), *inner);
  // [?, E, 2]: whether the target is 1, and whether it is 0.
  Expr kinds = row(c, {0, 1}) + reshape(y, {rows, each, 1}) * row(c, {1, -1});
  Expr counts = reshape(kinds, {rows, each, 2, 1}) * reshape(over, {rows, each, 1, thresholds});
  if (!labels)
    counts = reshape(sumOver(counts, {1}), {rows, 2, thresholds});
  return {{counts.value(), Value(), curve == "PR" ? mt::Finalizer::precision_recall : mt::Finalizer::roc, ""}};
}

} // namespace

bool isCounted(StringRef name) {
  return llvm::is_contained({"precision", "recall", "f1score", "fbetascore", "auc"}, name);
}

SmallVector<Measure> buildCounted(StringRef name, Criterion &criterion) {
  SmallVector<Measure> measures = name == "auc" ? buildArea(criterion)
                                  : name == "f1score" || name == "fbetascore"
                                      ? buildFBeta(criterion, name == "f1score")
                                      : buildRate(criterion, name == "precision");
  return criterion.config.failed() ? SmallVector<Measure>() : measures;
}

} // namespace mtc::training
