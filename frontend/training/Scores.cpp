// SPDX-License-Identifier: Apache-2.0
//
// Metrics that are functions of other sums than counts by thresholds: intersection over union, the coefficient of
// determination, correlations.
#include "frontend/training/Criteria.h"

using namespace mlir;
using llvm::StringRef;
using mt::Expr;

namespace mtc::training {
namespace {

Expr argmax(const Expr &a) {
  auto type = RankedTensorType::get(a.type().getShape().drop_back(), a.getBuilder().getI32Type());
  return toFloat(a.make(mt::ArgmaxOp::create(a.getBuilder(), a.getLocation(), type, a.value())));
}

// 1 at the class of each element, [?, E] to [?, E, C]. Fractions are cut off; what is no class has zeros. A number
// between -1 and 0 is class 0 where Keras casts to integers first.
Expr classesOf(const Expr &a, int64_t classes, bool wholeFirst) {
  SmallVector<float> numbers;
  for (int64_t i = 0; i < classes; ++i)
    numbers.push_back(static_cast<float>(i));
  auto type = RankedTensorType::get({classes}, a.getBuilder().getF32Type());
  Expr ids = a.make(mt::ConstantOp::create(a.getBuilder(), a.getLocation(), type,
                                           DenseElementsAttr::get(type, ArrayRef<float>(numbers))));
  int64_t rows = a.type().getShape().front(), each = mt::elementsPerRow(a.type());
  Expr column = reshape(a, {rows, each, 1});
  Expr whole = wholeFirst ? select(column < 0.0, -floor(-column), floor(column)) : floor(column);
  return toFloat(whole == ids);
}

Expr meanLast(const Expr &a) { return sumLast(a) / static_cast<double>(a.type().getShape().back()); }

} // namespace

Expr reshape(const Expr &a, ArrayRef<int64_t> shape) {
  return a.make(mt::ReshapeOp::create(a.getBuilder(), a.getLocation(), a.type().clone(shape), a.value()));
}

Expr columnOf(const Expr &a, int64_t index) {
  return a.make(mt::SliceOp::create(a.getBuilder(), a.getLocation(), a.type().clone({a.type().getShape().front(), 1}),
                                    a.value(), ArrayRef<int64_t>{index}, ArrayRef<int64_t>{1}, ArrayRef<int64_t>{}));
}

SmallVector<Measure> buildIou(StringRef name, Criterion &c) {
  bool binary = name == "binaryiou", hot = name.starts_with("onehot"), mean = name.ends_with("meaniou");
  int64_t classes = binary ? 2 : c.config.integer("num_classes");
  constexpr int64_t most = 1024;
  if (classes < 1 || classes > most)
    c.config.error("expected 1 to 1024 classes, found " + std::to_string(classes));
  SmallVector<int64_t> ids;
  if (mean)
    ids = llvm::to_vector(llvm::seq<int64_t>(0, std::clamp<int64_t>(classes, 0, most)));
  else
    ids = c.config.integers("target_class_ids");
  if (ids.empty() || llvm::any_of(ids, [&](int64_t id) { return id < 0 || id >= classes; }))
    c.config.error("expected target_class_ids from 0 to " + std::to_string(classes - 1) + ", found others");
  double threshold = binary ? c.config.real("threshold", 0.5) : 0;
  bool sparseTargets = hot ? false : binary || c.config.boolean("sparse_y_true", true),
       sparse = binary || c.config.boolean("sparse_y_pred", !hot);
  if (hot)
    c.config.ignore({"sparse_y_true"});
  if (!binary)
    c.config.expect("axis", -1);
  const Json *ignored = binary ? nullptr : c.config.find("ignore_class");
  double unseen = ignored ? c.config.real("ignore_class") : -1;
  std::string dtype = c.config.text("dtype", "int32");
  if (dtype != "int32" && dtype != "float32")
    c.config.error("expected dtype int32 or float32, found " + dtype);
  bool whole = dtype == "int32";
  if (c.config.failed())
    return {};
  Expr p = c.prediction(), t = c.truth();
  p = binary ? toFloat(p >= threshold) : sparse ? p : argmax(p);
  t = sparseTargets ? t : argmax(t);
  t = t.type().getElementType().isF32() ? t : toFloat(t);
  if (mt::elementsPerRow(p.type()) != mt::elementsPerRow(t.type())) {
    c.config.error("expected as many targets as predictions, found others");
    return {};
  }
  Expr actual = classesOf(t, classes, whole), found = classesOf(p, classes, whole);
  int64_t rows = t.type().getShape().front(), each = mt::elementsPerRow(t.type());
  if (ignored)
    actual = select(reshape(t, {rows, each, 1}) == unseen, 0.0, actual);
  if (c.weights) {
    Expr w = reshape(actual.make(c.weights), {rows, each, 1});
    actual = actual * (whole ? select(w < 0.0, -floor(-w), floor(w)) : w);
  }
  Value counts = mt::MatmulOp::create(c.builder, c.location,
                                      mt::TransposeOp::create(c.builder, c.location, actual.value(), {0, 2, 1}),
                                      found.value(), false, false);
  Measure measure = {counts, Value(), mt::Finalizer::iou};
  measure.parameters.assign(ids.begin(), ids.end());
  measure.wholeWeights = whole;
  return {measure};
}

SmallVector<Measure> buildDetermination(Criterion &c) {
  std::string aggregation = c.config.find("class_aggregation") ? c.config.text("class_aggregation") : "none";
  int64_t regressors = c.config.integer("num_regressors", 0);
  Expr p = c.prediction(), t = c.truth();
  if (p.type().getRank() != 2)
    c.config.error("expected predictions of 2 axes, found " + std::to_string(p.type().getRank()));
  if (aggregation != "none" && aggregation != "uniform_average" && aggregation != "variance_weighted_average")
    c.config.error("expected class_aggregation to be none, uniform_average or variance_weighted_average, found " +
                   aggregation);
  if (regressors < 0)
    c.config.error("expected num_regressors of 0 or more, found " + std::to_string(regressors));
  if (c.weights)
    c.config.error("expected weights of samples, found weights of elements");
  if (c.config.failed())
    return {};
  int64_t rows = p.type().getShape().front(), columns = p.type().getShape().back();
  auto build = [&](const Expr &target, const Expr &prediction, std::string part) {
    int64_t width = target.type().getShape().back();
    SmallVector<Value> parts;
    for (const Expr &row : {target, square(target), square(target - prediction), target * 0.0 + 1.0})
      parts.push_back(reshape(row, {rows, 1, width}).value());
    auto type = RankedTensorType::get({rows, 4, width}, c.builder.getF32Type());
    Measure measure = {mt::ConcatOp::create(c.builder, c.location, type, parts, 1), Value(), mt::Finalizer::r2,
                       std::move(part)};
    measure.parameters = {aggregation == "variance_weighted_average" ? 1.0 : 0.0, static_cast<double>(regressors),
                          static_cast<double>(columns)};
    return measure;
  };
  if (aggregation != "none")
    return {build(t, p, "")};
  SmallVector<Measure> measures; // one metric per column
  for (int64_t i = 0; i < columns; ++i) {
    measures.push_back(build(columnOf(t, i), columnOf(p, i), "/" + std::to_string(i)));
  }
  return measures;
}

SmallVector<Measure> buildCorrelation(Criterion &c, bool concordance) {
  c.config.expect("axis", -1);
  Expr p = c.prediction(), t = c.truth();
  Expr tCentre = meanLast(t), pCentre = meanLast(p), tOff = t - tCentre, pOff = p - pCentre;
  Expr tVariance = meanLast(square(tOff - meanLast(tOff))), pVariance = meanLast(square(pOff - meanLast(pOff)));
  Expr values =
      concordance
          ? meanLast((t - pCentre) * pOff * 2.0 / (tVariance + pVariance + square(tCentre - pCentre) + kerasEpsilon))
          : meanLast(tOff / sqrt(tVariance) * (pOff / sqrt(pVariance)));
  return {{squeezeLast(values).value(), Value()}};
}

} // namespace mtc::training
