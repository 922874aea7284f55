// SPDX-License-Identifier: Apache-2.0
#include "frontend/training/Training.h"

#include "dialects/mt/Numbers.h"
#include "runtime/support/suggest.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using llvm::StringRef;

namespace mtc::training {
namespace {

Location named(OpBuilder &builder, StringRef name) { return NameLoc::get(builder.getStringAttr(name)); }

Value makeTarget(OpBuilder &builder, const Output &output, StringRef name, bool sparse) {
  auto type = cast<RankedTensorType>(output.value.getType());
  Type wanted = sparse ? RankedTensorType::get(type.getShape().drop_back(), builder.getI32Type())
                       : type.clone(builder.getF32Type());
  return mt::TargetOp::create(builder, named(builder, output.name), wanted, name, IntegerAttr());
}

// Keras has the same warning: a loss from logits applies softmax or sigmoid, so the model must not.
void warnOfProbabilities(Location outputLocation, Value output) {
  Operation *op = output.getDefiningOp();
  if (isa_and_nonnull<mt::SoftmaxOp, mt::SigmoidOp>(op))
    emitWarning(outputLocation) << "from_logits=True expects an output of logits, found one of "
                                << (isa<mt::SoftmaxOp>(op) ? "softmax" : "sigmoid")
                                << ", which the loss applies again: remove the activation, or set from_logits=False";
}

} // namespace

std::string parseObject(StringRef text, Json &object) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  Json config = Json::object();
  for (StringRef part : llvm::drop_begin(parts)) {
    auto [key, value] = part.split('=');
    double number;
    int64_t whole;
    if (key.empty() || value.empty())
      return "expected NAME,key=value,..., found '" + text.str() + "'";
    if (key == "lr") // the name in PyTorch and in older versions of Keras
      key = "learning_rate";
    if (value.equals_insensitive("true") || value.equals_insensitive("false")) // also Python's True
      config[key.str()] = value.equals_insensitive("true");
    else if (!value.getAsInteger(10, whole))
      config[key.str()] = whole;
    else if (mlir::mt::readNumber(value, number))
      config[key.str()] = number;
    else
      config[key.str()] = value.str();
  }
  object = Json{{"class_name", parts[0].str()}, {"config", config}};
  return {};
}

Json listMetrics(StringRef text) {
  Json metrics = Json::array();
  SmallVector<StringRef> parts;
  text.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts)
    if (part != "none")
      metrics.push_back(part.str());
  return metrics;
}

Training::Training(OpBuilder &builder, const Json *compile, const TrainingOptions &options)
    : builder(builder), location(named(builder, compile ? "compile_config" : "training")), options(options) {
  if (!compile || !compile->is_object())
    return;
  auto take = [&](StringRef key, Json &value) {
    if (const Json *found = member(*compile, key))
      value = *found;
  };
  take("loss", loss);
  take("optimizer", optimizer);
  take("metrics", metrics);
  take("loss_weights", lossWeights);
  take("weighted_metrics", weightedMetrics);
}

bool Training::Goal::isSparse() const {
  return cast<RankedTensorType>(target.getType()).getElementType().isInteger(32);
}

LogicalResult Training::readOptions() {
  auto replace = [&](const std::string &text, Json &value) {
    if (!text.empty())
      if (std::string problem = parseObject(text, value); !problem.empty())
        problems.push_back(problem);
  };
  replace(options.loss, loss);
  replace(options.optimizer, optimizer);
  if (!options.metrics.empty()) {
    metrics = listMetrics(options.metrics);
    weightedMetrics = Json();
  }
  if (!options.loss.empty())
    lossWeights = Json();
  if (loss.is_null())
    problems.push_back("expected a loss, found none: give one, as --loss "
                       "sparse_categorical_crossentropy,from_logits=true");
  if (optimizer.is_null())
    problems.push_back("expected an optimizer, found none: give one, as --optimizer adam");
  for (const std::string &problem : problems)
    emitError(location) << problem;
  return success(problems.empty());
}

const Json *Training::partFor(const Json *all, size_t index, ArrayRef<Output> outputs, bool isMetrics) const {
  if (!all || all->is_null())
    return nullptr;
  if (all->is_object() && !all->contains("class_name"))
    return member(*all, outputs[index].name);
  if (!all->is_array())
    return all;
  // A list of losses has one item per output. A list of metrics whose items are lists has one item per output;
  // otherwise all items are for every output.
  if (isMetrics && !llvm::any_of(*all, [](const Json &item) { return item.is_array(); }))
    return outputs.size() == 1 || all->size() != outputs.size() ? all : &(*all)[index];
  return index < all->size() ? &(*all)[index] : nullptr;
}

// Names of parts must be names of outputs; a list of losses or weights must have one item per output.
LogicalResult Training::checkParts(ArrayRef<Output> outputs) {
  LogicalResult result = success();
  for (auto [what, all] : {std::pair("loss", &loss),
                           {"loss_weights", &lossWeights},
                           {"metrics", &metrics},
                           {"weighted_metrics", &weightedMetrics}}) {
    bool perOutput = all == &loss || all == &lossWeights;
    if (perOutput && all->is_array() && all->size() != outputs.size())
      result = emitError(location) << "expected " << what << " for each of " << outputs.size() << " outputs, found "
                                   << all->size();
    if (!all->is_object() || all->contains("class_name"))
      continue;
    for (const auto &item : all->items())
      if (llvm::none_of(outputs, [&](const Output &output) { return output.name == item.key(); })) {
        std::string names;
        for (const Output &output : outputs)
          names += (names.empty() ? "" : ", ") + output.name;
        result = emitError(location) << "expected " << what << " for outputs of " << names << ", found '" << item.key()
                                     << "'";
      }
  }
  return result;
}

LogicalResult Training::build(ArrayRef<Output> outputs) {
  if (failed(readOptions()) || failed(checkParts(outputs)))
    return failure();
  bool only = outputs.size() == 1;
  LogicalResult result = success();
  std::vector<Goal> goals;
  for (auto [index, output] : llvm::enumerate(outputs)) {
    Goal &goal = goals.emplace_back(Goal{&output, {}, {}, only ? "" : output.name + "_", ""});
    const Json *part = partFor(&loss, index, outputs, false), *weight = partFor(&lossWeights, index, outputs, false);
    if (weight && !weight->is_number() && !weight->is_null()) {
      emitError(location) << "expected loss_weights of numbers, found " << describe(*weight);
      result = failure();
    }
    double scale = weight && weight->is_number() ? weight->get<double>() : 1;
    if (part && !part->is_null() && failed(buildLoss(goal, *part, scale, only)))
      result = failure();
  }
  if (failed(result))
    return failure();
  if (llvm::all_of(goals, [](const Goal &goal) { return !goal.target; }))
    return emitError(location) << "expected a loss for one of the outputs, found none";
  for (auto [index, goal] : llvm::enumerate(goals)) {
    for (bool weighted : {false, true}) {
      const Json *part = partFor(weighted ? &weightedMetrics : &metrics, index, outputs, true);
      if (part && !part->is_null() && goal.target && failed(buildMetrics(goal, *part, weighted)))
        result = failure();
    }
    mt::OutputOp::create(builder, named(builder, goal.output->name), goal.output->name, goal.output->value);
  }
  if (failed(result))
    return failure();
  return buildOptimizer(builder, named(builder, "optimizer"), optimizer);
}

LogicalResult Training::buildLoss(Goal &goal, const Json &object, double scale, bool only) {
  const Output &output = *goal.output;
  Location outputLocation = named(builder, output.name);
  if (isCustom(object))
    return emitError(outputLocation) << customText("a loss", object);
  const CriterionEntry *entry = findCriterion(losses(), objectName(object));
  if (!entry) {
    std::string name = object.is_string() ? object.get<std::string>() : textMember(object, "class_name");
    std::vector<std::string> known;
    for (const CriterionEntry &each : losses())
      known.push_back(each.metric);
    return emitError(outputLocation) << "expected a loss of " << namesOf(losses()) << ", found " << name
                                     << mtrun::didYouMean(name, known);
  }
  auto type = cast<RankedTensorType>(output.value.getType());
  goal.isFlat = type.getRank() == 1 && entry->averages;
  if ((type.getRank() < 2 && !goal.isFlat) || !type.getElementType().isF32())
    return emitError(outputLocation) << "expected an output of floats of 2 axes or more with the batch, found " << type;
  Config config(objectConfig(object),
                [&](const std::string &message) { emitError(outputLocation) << "loss: " << message; });
  config.ignore({"name"});
  if (const Json *dtype = config.find("dtype"); dtype && *dtype != "float64")
    config.expect("dtype", "float32");
  if (const Json *ignored = config.find("ignore_class"))
    config.error("expected no ignore_class, found " + describe(*ignored) +
                 ": mtc.fit and mtc.compile of the model in Python trace it (docs/keras-traces.md)");
  if (entry->build != buildDice && entry->build != buildTversky) // which read it
    config.expect("axis", -1);
  std::string reduction = config.text("reduction", "sum_over_batch_size");
  bool sum = reduction == "sum";
  // Without sample weights the two means are equal.
  bool weighted = reduction == "mean_with_sample_weight",
       mean = reduction == "sum_over_batch_size" || reduction == "mean" || reduction == "auto" || weighted;
  if (!sum && !mean)
    config.error("expected the reduction sum_over_batch_size or sum, found " + reduction);
  goal.target = makeTarget(builder, output, only ? "target" : output.name + "_target", entry->sparse);
  goal.lossKind = entry->metric;
  auto column = [&](Value value) {
    auto wide = RankedTensorType::get({ShapedType::kDynamic, 1}, builder.getF32Type());
    return goal.isFlat ? mt::ReshapeOp::create(builder, outputLocation, wide, value).getResult() : value;
  };
  goal.predictions = column(output.value);
  goal.truth = column(goal.target);
  Criterion criterion = {builder, outputLocation, goal.predictions, goal.truth, config};
  criterion.fromLogits = entry->logits && config.boolean("from_logits", false);
  if (entry->number)
    criterion.number = config.real(entry->number, 1);
  if (double smoothing = config.real("label_smoothing", 0); smoothing != 0)
    criterion.targets = smooth(criterion, goal.truth, smoothing, StringRef(goal.lossKind).starts_with("binary"));
  Value values = config.failed() ? Value() : entry->build(criterion);
  if (criterion.isOne && output.mask)
    config.error("expected an output without a mask for a loss of all samples at once, found one");
  config.finish();
  if (config.failed())
    return failure();
  if (criterion.fromLogits)
    warnOfProbabilities(outputLocation, output.value);
  // Keras takes the mean over the last axis, which is the batch here: one number, as in no other layout.
  if (goal.isFlat && options.sampleWeights) {
    mt::Expr each(builder, outputLocation, values),
        count(builder, outputLocation,
              mt::BatchSizeOp::create(builder, outputLocation, RankedTensorType::get({}, builder.getF32Type())));
    values = broadcastTo(sumAll(each) / count, each.type()).value();
  }
  bool isOne = goal.isFlat || criterion.isOne;
  if (sum && (!isOne || options.sampleWeights)) { // the divisor is the number of samples
    auto count = mt::BatchSizeOp::create(builder, outputLocation, RankedTensorType::get({}, builder.getF32Type()));
    values = (mt::Expr(builder, outputLocation, values) * mt::Expr(builder, outputLocation, count)).value();
  }
  if (options.sampleWeights)
    goal.sampleWeights = mt::SampleWeightOp::create(builder, outputLocation,
                                                    RankedTensorType::get({ShapedType::kDynamic}, builder.getF32Type()),
                                                    only ? "sample_weight" : output.name + "_sample_weight");
  mt::Divisor divisor = sum ? mt::Divisor::samples : mt::Divisor::elements;
  Value weights = goal.sampleWeights;
  if (weighted && options.sampleWeights) {
    divisor = mt::Divisor::weights;
    if (cast<RankedTensorType>(values.getType()).getRank() != 1)
      return emitError(outputLocation) << "expected a loss of one number for each sample with the reduction "
                                          "mean_with_sample_weight, found "
                                       << values.getType();
  }
  // The mean is over the steps that the mask selects.
  if (output.mask) {
    if (options.sampleWeights ||
        cast<RankedTensorType>(values.getType()).getShape() != cast<RankedTensorType>(output.mask.getType()).getShape())
      return emitError(outputLocation)
             << "expected an output without a mask, found one, of a Masking layer or of an Embedding "
                "with mask_zero, which is not supported with weights of samples, nor for an output "
                "of another shape than steps and classes";
    weights = goal.mask = toFloat(mt::Expr(builder, outputLocation, output.mask)).value();
    divisor = sum ? divisor : mt::Divisor::weights;
  }
  mt::LossOp::create(builder, outputLocation, only ? "loss" : output.name + "_loss", values, weights, divisor,
                     llvm::APFloat(static_cast<float>(scale)));
  return success();
}

} // namespace mtc::training
