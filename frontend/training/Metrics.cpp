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

bool isClass(const Json &metric) { return metric.is_object() && textMember(metric, "class_name") != "function"; }

} // namespace

const CriterionEntry *Training::resolveMetric(const Goal &goal, const std::string &name, bool isClass) {
  if (isClass)
    return criterionOfClass(name);
  int64_t width = cast<RankedTensorType>(goal.predictions.getType()).getShape().back();
  // The shapes determine which metric these two names select.
  if (name == "accuracy" || name == "acc")
    return &accuracies()[width == 1 ? 2 : goal.isSparse() ? 0 : 1];
  if (name == "crossentropy" || name == "ce")
    return &losses()[width == 1 ? 2 : goal.isSparse() ? 0 : 1];
  return criterionOfClass(name);
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
  bool fits = entry    ? entry->sparse == goal.isSparse()
              : counts ? goal.isSparse() == takesLabels(name, objectConfig(metric))
                       : false;
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
    for (const char *counted : countedMetrics)
      known.push_back(counted);
    known.push_back(rootMeanSquaredError);
    llvm::for_each(losses(), add);
    return emitError(outputLocation) << "expected a metric of " << llvm::join(known, ", ") << ", found " << shown
                                     << ": --drop-unsupported-metrics compiles without it"
                                     << mtrun::didYouMean(shown, known);
  }
  Config config(objectConfig(metric), [&](const std::string &message) {
    emitError(outputLocation) << "metric " << shown << ": " << message;
  });
  bool root = name == plainName(rootMeanSquaredError);
  bool shortName = metric.is_string() || (entry && !root && plainName(entry->metric) != name);
  std::string title = config.text("name", shortName || !entry ? shown : root ? rootMeanSquaredError : entry->metric);
  Criterion criterion = {builder, outputLocation, goal.predictions, goal.truth, config};
  criterion.negative = textMember(metric, "class_name") == "function";
  // Keras' mean over the last axis of an output [?] is one over the batch.
  if (goal.isFlat && entry && !root && entry->averages)
    config.error("expected an output of 2 axes or more with the batch, found 1");
  SmallVector<Measure> measures = buildKerasMetric(metric, entry, criterion);
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
    report(builder, outputLocation, title, measure, weighted ? goal.sampleWeights : Value());
  }
  return success();
}

} // namespace mtc::training
