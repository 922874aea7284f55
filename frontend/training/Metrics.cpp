// SPDX-License-Identifier: Apache-2.0
#include "frontend/training/Criteria.h"
#include "frontend/training/Training.h"
#include "runtime/support/suggest.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using llvm::StringRef;
using mt::Expr;

namespace mtc::training {
namespace {

constexpr StringLiteral rootName = "root_mean_squared_error";

// 1 if a prediction equals its target, else 0: Keras' class Accuracy. The text "accuracy" selects another metric.
Value buildEqual(Criterion &c) {
  Expr equal = toFloat(Expr(c.builder, c.location, c.predictions) == Expr(c.builder, c.location, c.targets));
  auto last = static_cast<double>(equal.type().getShape().back());
  return (squeezeLast(sumLast(equal)) * (1 / last)).value();
}
constexpr CriterionEntry equality = {{"accuracy"}, "accuracy", false, false, buildEqual};

bool isClass(const Json &metric) { return metric.is_object() && textMember(metric, "class_name") != "function"; }

// Multiplies weights, which may have more axes, by the weights of samples.
Value weighSamples(OpBuilder &builder, Location location, Value weights, Value samples) {
  Expr s(builder, location, samples);
  while (s.type().getRank() < cast<RankedTensorType>(weights.getType()).getRank())
    s = unsqueezeLast(s);
  return (Expr(builder, location, weights) * s).value();
}

void weighMeasure(OpBuilder &builder, Location location, Measure &measure, Value samples) {
  if (mt::isOfSums(measure.finalizer))
    measure.values = weighSamples(builder, location, measure.values, samples);
  else if (measure.weights)
    measure.weights = weighSamples(builder, location, measure.weights, samples);
  else
    measure.weights = samples;
}

Measure buildMean(const CriterionEntry &entry, Criterion &c, mt::Finalizer finalizer) {
  c.config.expect("threshold", 0.5);
  c.config.expect("axis", -1);
  c.config.expect("label_smoothing", 0);
  c.fromLogits = entry.logits && c.config.boolean("from_logits", false);
  if (entry.number)
    c.number = c.config.real(entry.number, 1);
  Value values = entry.build(c);
  bool higher = &entry == &equality || findCriterion(accuracies(), entry.names[0]);
  // As a metric class it has the opposite sign of the loss and of the loss function.
  if (StringRef(entry.metric) == "cosine_similarity" && !c.negative) {
    values = (-Expr(c.builder, c.location, values)).value();
    higher = true;
  }
  return {values, Value(), finalizer, "", higher ? mt::Better::higher : mt::Better::lower};
}

} // namespace

const CriterionEntry *Training::resolveMetric(const Goal &goal, const std::string &name, bool isClass) {
  if (isClass && name == "accuracy")
    return &equality;
  if (isClass && (name == "acc" || name == "crossentropy" || name == "ce"))
    return nullptr; // these are only texts, not classes
  int64_t width = cast<RankedTensorType>(goal.output->value.getType()).getShape().back();
  // The shapes determine which metric these two names select.
  if (name == "accuracy" || name == "acc")
    return &accuracies()[width == 1 ? 2 : goal.isSparse() ? 0 : 1];
  if (name == "crossentropy" || name == "ce")
    return &losses()[width == 1 ? 2 : goal.isSparse() ? 0 : 1];
  if (name == plainName(rootName))
    return findCriterion(losses(), "meansquarederror");
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
  Location outputLocation = NameLoc::get(builder.getStringAttr(goal.output->name));
  std::string name = objectName(metric),
              shown = metric.is_string() ? metric.get<std::string>() : textMember(metric, "class_name");
  const CriterionEntry *entry = resolveMetric(goal, name, isClass(metric));
  bool lossObject = isClass(metric) && textMember(metric, "module") == "keras.losses";
  if (isCustom(metric) || lossObject)
    entry = nullptr;
  bool counts = isCounted(name) && !isCustom(metric);
  bool fits = entry ? entry->sparse == goal.isSparse() : counts && !goal.isSparse();
  if (!fits && options.dropUnsupportedMetrics) {
    emitWarning(outputLocation) << "the metric " << shown << " is dropped";
    return success();
  }
  if (!fits && (entry || counts))
    return emitError(outputLocation) << "expected a metric of the loss's targets, "
                                     << (goal.isSparse() ? "labels" : "values of the output's shape") << ", found "
                                     << shown;
  if (isCustom(metric))
    return emitError(outputLocation) << customText("a metric", metric);
  if (!fits) {
    std::vector<std::string> known = {"accuracy"};
    auto add = [&](const CriterionEntry &each) { known.push_back(each.metric); };
    llvm::for_each(accuracies(), add);
    known.insert(known.end(), {"precision", "recall", "f1_score", "fbeta_score", "auc", rootName.str()});
    llvm::for_each(losses(), add);
    return emitError(outputLocation) << "expected a metric of " << llvm::join(known, ", ") << ", found " << shown
                                     << ": --drop-unsupported-metrics compiles without it"
                                     << mtrun::didYouMean(shown, known);
  }
  Config config(objectConfig(metric), [&](const std::string &message) {
    emitError(outputLocation) << "metric " << shown << ": " << message;
  });
  bool root = name == plainName(rootName);
  bool shortName = metric.is_string() || (entry && !root && plainName(entry->metric) != name);
  std::string title = config.text("name", shortName || !entry ? shown : root ? rootName.str() : entry->metric);
  if (const Json *dtype = config.find("dtype"); dtype && *dtype != "float64")
    config.expect("dtype", "float32");
  if (const Json *dtype = config.find("dtype"); dtype && dtype->is_object())
    config.ignore({"dtype"});
  Criterion criterion = {builder, outputLocation, goal.output->value, goal.target, config};
  criterion.negative = textMember(metric, "class_name") == "function";
  SmallVector<Measure> measures;
  if (counts)
    measures = buildCounted(name, criterion);
  else
    measures.push_back(buildMean(*entry, criterion, root ? mt::Finalizer::root_mean : mt::Finalizer::mean));
  config.finish();
  if (config.failed())
    return failure();
  if (weighted && names[goal.prefix + title]) // Keras' name of the second metric
    title = "weighted_" + title;
  title = goal.prefix + title;
  if (unsigned count = names[title]++)
    title += "_" + std::to_string(count);
  for (Measure &measure : measures) {
    if (goal.mask && (counts || measure.weights))
      return emitError(outputLocation) << "expected a metric that is a mean over the steps that a mask shows, found "
                                       << shown;
    if (goal.mask)
      measure.weights = goal.mask;
    if (weighted && goal.sampleWeights)
      weighMeasure(builder, outputLocation, measure, goal.sampleWeights);
    mt::MetricOp::create(builder, outputLocation, title + measure.part, measure.values, measure.weights,
                         measure.finalizer, mt::BetterAttr::get(builder.getContext(), measure.better));
  }
  return success();
}

} // namespace mtc::training
