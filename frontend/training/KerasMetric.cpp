// SPDX-License-Identifier: Apache-2.0
//
// One metric of Keras' classes, for files and for traces that name it.
#include "frontend/training/Criteria.h"

using namespace mlir;
using llvm::StringRef;
using mt::Expr;

namespace mtc::training {
namespace {

// 1 if a prediction equals its target, else 0: Keras' class Accuracy. The text "accuracy" selects another metric.
Value buildEqual(Criterion &c) {
  Expr equal = toFloat(Expr(c.builder, c.location, c.predictions) == Expr(c.builder, c.location, c.targets));
  auto last = static_cast<double>(equal.type().getShape().back());
  return (squeezeLast(sumLast(equal)) * (1 / last)).value();
}
constexpr CriterionEntry equality = {{"accuracy"}, "accuracy", false, false, buildEqual};

// Multiplies weights, which may have more axes, by the weights of samples.
Value weighSamples(OpBuilder &builder, Location location, Value weights, Value samples) {
  Expr s(builder, location, samples);
  while (s.type().getRank() < cast<RankedTensorType>(weights.getType()).getRank())
    s = unsqueezeLast(s);
  return (Expr(builder, location, weights) * s).value();
}

// Binary accuracy at another threshold than 0.5.
Value accuracyAbove(Criterion &c, double threshold) {
  Expr above = toFloat(Expr(c.builder, c.location, c.predictions) > threshold),
       equal = toFloat(above == Expr(c.builder, c.location, c.targets));
  return (squeezeLast(sumLast(equal)) / static_cast<double>(equal.type().getShape().back())).value();
}

Measure buildMean(const CriterionEntry &entry, Criterion &c, mt::Finalizer finalizer) {
  bool binary = StringRef(entry.metric) == "binary_accuracy";
  double threshold = binary ? c.config.real("threshold", 0.5) : 0.5;
  if (!binary)
    c.config.expect("threshold", 0.5);
  c.config.expect("axis", -1);
  c.config.expect("from_sorted_ids", false); // else predictions are ids, and no scores of classes
  double smoothing = c.config.real("label_smoothing", 0);
  c.fromLogits = entry.logits && c.config.boolean("from_logits", false);
  if (entry.number)
    c.number = c.config.real(entry.number, 1);
  if (smoothing != 0)
    c.targets = smooth(c, c.targets, smoothing, StringRef(entry.metric).starts_with("binary"));
  Value values = threshold != 0.5 ? accuracyAbove(c, threshold) : entry.build(c);
  bool higher = &entry == &equality || findCriterion(accuracies(), entry.names[0]);
  // As a metric class it has the opposite sign of the loss and of the loss function.
  if (values && StringRef(entry.metric) == "cosine_similarity" && !c.negative) {
    values = (-Expr(c.builder, c.location, values)).value();
    higher = true;
  }
  return {values, Value(), finalizer, "", higher ? mt::Better::higher : mt::Better::lower};
}

} // namespace

Value smooth(Criterion &c, Value targets, double smoothing, bool binary) {
  double classes = binary ? 2 : static_cast<double>(cast<RankedTensorType>(targets.getType()).getShape().back());
  return (Expr(c.builder, c.location, targets) * (1 - smoothing) + smoothing / classes).value();
}

const CriterionEntry *criterionOfClass(StringRef name) {
  if (name == "accuracy")
    return &equality;
  if (name == plainName(rootMeanSquaredError))
    return findCriterion(losses(), "meansquarederror");
  const CriterionEntry *entry = findCriterion(accuracies(), name);
  return entry ? entry : findCriterion(losses(), name);
}

SmallVector<Measure> buildKerasMetric(const Json &object, const CriterionEntry *entry, Criterion &c) {
  std::string name = objectName(object);
  c.config.ignore({"name"});
  // IoU rounds what it counts to the type.
  if (const Json *dtype = c.config.find("dtype"); dtype && *dtype != "float64" && !StringRef(name).ends_with("iou"))
    dtype->is_object() ? c.config.ignore({"dtype"}) : c.config.expect("dtype", "float32");
  SmallVector<Measure> measures;
  if (!entry)
    measures = buildCounted(name, c);
  else
    measures.push_back(
        buildMean(*entry, c, name == plainName(rootMeanSquaredError) ? mt::Finalizer::root_mean : mt::Finalizer::mean));
  c.config.finish();
  return c.config.failed() ? SmallVector<Measure>() : measures;
}

void report(OpBuilder &builder, Location location, StringRef title, Measure &measure, Value samples) {
  if (samples && measure.wholeWeights) {
    Expr w(builder, location, samples);
    samples = select(w < 0.0, -floor(-w), floor(w)).value();
  }
  if (samples && mt::isOfSums(measure.finalizer))
    measure.values = weighSamples(builder, location, measure.values, samples);
  else if (samples && measure.weights)
    measure.weights = weighSamples(builder, location, measure.weights, samples);
  else if (samples)
    measure.weights = samples;
  mt::MetricOp::create(builder, location, (title + measure.part).str(), measure.values, measure.weights,
                       measure.finalizer, mt::BetterAttr::get(builder.getContext(), measure.better),
                       measure.parameters);
}

} // namespace mtc::training
