// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/Criteria.h"
#include "frontend/keras/Training.h"

using namespace mlir;
using llvm::StringRef;
using mt::Expr;

namespace mtc::keras {
namespace {

constexpr StringLiteral counted[] = {"precision", "recall", "f1score"};

// Weights of samples beside values of more axes.
Value weighSamples(OpBuilder &builder, Location location, Value weights, Value samples) {
  Expr s(builder, location, samples);
  while (s.type().getRank() < cast<RankedTensorType>(weights.getType()).getRank())
    s = unsqueezeLast(s);
  return (Expr(builder, location, weights) * s).value();
}

// Above the threshold; without one, the largest of the classes.
std::optional<Expr> predicted(Criterion &c, StringRef key, bool largest) {
  Expr p(c.builder, c.location, c.predictions);
  const Json *threshold = c.config.find(key);
  if (!threshold && largest)
    return toFloat(p >= maxLast(p)) * toFloat(abs(p) > 1e-9);
  if (threshold && !threshold->is_number()) {
    c.config.error("expected " + key.str() + " to be one number or none, found " + describe(*threshold));
    return {};
  }
  return toFloat(p > (threshold ? threshold->get<double>() : 0.5));
}

Counts buildMean(const CriterionEntry &entry, Criterion &c) {
  c.config.expect("threshold", 0.5);
  c.config.expect("axis", -1);
  c.config.expect("label_smoothing", 0);
  c.fromLogits = entry.logits && c.config.boolean("from_logits", false);
  if (entry.number)
    c.number = c.config.real(entry.number, 1);
  Value values = entry.build(c);
  // As a loss it is the negative.
  if (StringRef(entry.metric) == "cosine_similarity")
    values = (-Expr(c.builder, c.location, values)).value();
  return {values, Value()};
}

} // namespace

bool isCounted(StringRef name) { return llvm::is_contained(counted, name); }

Counts buildCounts(StringRef name, Criterion &c) {
  bool f1 = name == "f1score";
  if (f1 && c.config.text("average", "none") != "micro")
    c.config.error("expected average to be micro, found " + c.config.text("average", "none"));
  c.config.expectAbsent({"top_k", "class_id"});
  std::optional<Expr> p = predicted(c, f1 ? "threshold" : "thresholds", f1);
  if (!p || c.config.failed())
    return {};
  Expr y = toFloat(!(Expr(c.builder, c.location, c.targets) == 0.0));
  if (f1) // 2 tp / (2 tp + fp + fn)
    return {(*p * y).value(), (*p + y).value()};
  return name == "precision" ? Counts{y.value(), p->value()} : Counts{p->value(), y.value()};
}

const CriterionEntry *Training::resolveMetric(const Goal &goal, const std::string &name) {
  int64_t width = cast<RankedTensorType>(goal.output->value.getType()).getShape().back();
  // These two are resolved by the shapes.
  if (name == "accuracy" || name == "acc")
    return &accuracies()[width == 1 ? 2 : goal.isSparse() ? 0 : 1];
  if (name == "crossentropy" || name == "ce")
    return &losses()[width == 1 ? 2 : goal.isSparse() ? 0 : 1];
  const CriterionEntry *entry = findCriterion(accuracies(), name);
  return entry ? entry : findCriterion(losses(), name);
}

LogicalResult Training::buildMetrics(Goal &goal, const Json &part, bool weighted) {
  LogicalResult result = success();
  for (const Json &metric : part.is_array() ? part : Json::array({part}))
    if (!metric.is_null() && failed(buildMetric(goal, metric, weighted)))
      result = failure();
  return result;
}

LogicalResult Training::buildMetric(Goal &goal, const Json &metric, bool weighted) {
  Location place = NameLoc::get(builder.getStringAttr(goal.output->name));
  std::string name = objectName(metric),
              shown = metric.is_string() ? metric.get<std::string>() : textMember(metric, "class_name");
  const CriterionEntry *entry = resolveMetric(goal, name);
  bool counts = isCounted(name), fits = entry ? entry->sparse == goal.isSparse() : counts && !goal.isSparse();
  if (!fits && options.dropUnsupportedMetrics) {
    emitWarning(place) << "the metric " << shown << " is dropped";
    return success();
  }
  if (!fits && (entry || counts))
    return emitError(place) << "expected a metric of the loss's targets, "
                            << (goal.isSparse() ? "labels" : "values of the output's shape") << ", found " << shown;
  if (!fits)
    return emitError(place) << "expected a metric of accuracy, " << namesOf(accuracies())
                            << ", precision, recall, f1_score, " << namesOf(losses()) << ", found " << shown
                            << ": --drop-unsupported-metrics compiles without it";
  Config config(objectConfig(metric),
                [&](const std::string &message) { emitError(place) << "metric " << shown << ": " << message; });
  bool shortName = metric.is_string() || (entry && plainName(entry->metric) != name);
  std::string title = config.text("name", shortName || !entry ? shown : entry->metric);
  config.expect("dtype", "float32");
  if (const Json *dtype = config.find("dtype"); dtype && dtype->is_object())
    config.ignore({"dtype"});
  Criterion criterion = {builder, place, goal.output->value, goal.target, config};
  Counts values = counts ? buildCounts(name, criterion) : buildMean(*entry, criterion);
  config.finish();
  if (config.failed())
    return failure();
  if (weighted && goal.sampleWeights && values.weights)
    values.weights = weighSamples(builder, place, values.weights, goal.sampleWeights);
  else if (weighted && goal.sampleWeights)
    values.weights = goal.sampleWeights;
  title = goal.prefix + title;
  if (unsigned count = names[title]++)
    title += "_" + std::to_string(count);
  mt::MetricOp::create(builder, place, title, values.values, values.weights);
  return success();
}

} // namespace mtc::keras
