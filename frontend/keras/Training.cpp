// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/Training.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using llvm::StringRef;

namespace mtc::keras {
namespace {

Location named(OpBuilder &builder, StringRef name) { return NameLoc::get(builder.getStringAttr(name)); }

// "SparseCategoricalCrossentropy" and "sparse_categorical_crossentropy" are one name.
std::string plainName(StringRef name) {
  std::string plain;
  for (char c : name)
    if (c != '_')
      plain += llvm::toLower(c);
  return plain;
}

// The name in "mse", {"class_name": "MeanSquaredError", "config": {...}} or {"class_name": "function", "config": "mse"}.
std::string objectName(const Json &object) {
  if (object.is_string())
    return plainName(object.get<std::string>());
  std::string name = textMember(object, "class_name");
  return plainName(name == "function" ? textMember(object, "config") : name);
}

const Json &objectConfig(const Json &object) {
  static const Json empty = Json::object();
  const Json *config = member(object, "config");
  return config && config->is_object() ? *config : empty;
}

struct Criterion { // one loss or metric at work
  OpBuilder &builder;
  Location location;
  Value predictions, targets;
  Config &config;
  bool fromLogits = false;
  double number = 1;
};

template <typename Op> Value makeLogits(Criterion &c) { return Op::create(c.builder, c.location, c.predictions, c.targets, c.fromLogits); }
template <typename Op> Value makeWith(Criterion &c) {
  return Op::create(c.builder, c.location, c.predictions, c.targets, llvm::APFloat(static_cast<float>(c.number)));
}
template <typename Op> Value makeTopK(Criterion &c) {
  return Op::create(c.builder, c.location, c.predictions, c.targets, c.config.integer("k", 5));
}
template <typename Op> Value make(Criterion &c) { return Op::create(c.builder, c.location, c.predictions, c.targets); }

struct CriterionEntry {
  const char *names[3]; // plain; the first is the one that Keras gives a metric
  const char *metric;   // as Keras names it in its logs
  bool sparse;          // targets are labels
  bool logits;          // has from_logits
  Value (*build)(Criterion &);
  const char *number = nullptr; // an option, 1 without it
};

constexpr CriterionEntry losses[] = {
    {{"sparsecategoricalcrossentropy"}, "sparse_categorical_crossentropy", true, true, makeLogits<mt::SparseCategoricalCrossentropyOp>},
    {{"categoricalcrossentropy"}, "categorical_crossentropy", false, true, makeLogits<mt::CategoricalCrossentropyOp>},
    {{"binarycrossentropy", "bce"}, "binary_crossentropy", false, true, makeLogits<mt::BinaryCrossentropyOp>},
    {{"meansquarederror", "mse"}, "mean_squared_error", false, false, make<mt::MeanSquaredErrorOp>},
    {{"meanabsoluteerror", "mae"}, "mean_absolute_error", false, false, make<mt::MeanAbsoluteErrorOp>},
    {{"huber"}, "huber", false, false, makeWith<mt::HuberOp>, "delta"},
    {{"hinge"}, "hinge", false, false, make<mt::HingeOp>},
    {{"squaredhinge"}, "squared_hinge", false, false, make<mt::SquaredHingeOp>},
    {{"categoricalhinge"}, "categorical_hinge", false, false, make<mt::CategoricalHingeOp>},
    {{"kldivergence", "kullbackleiblerdivergence"}, "kl_divergence", false, false, make<mt::KlDivergenceOp>},
    {{"poisson"}, "poisson", false, false, make<mt::PoissonOp>},
    {{"logcosh"}, "log_cosh", false, false, make<mt::LogCoshOp>},
    {{"cosinesimilarity"}, "cosine_similarity", false, false, make<mt::CosineSimilarityOp>},
    {{"meanabsolutepercentageerror", "mape"}, "mean_absolute_percentage_error", false, false, make<mt::MeanAbsolutePercentageErrorOp>},
    {{"meansquaredlogarithmicerror", "msle"}, "mean_squared_logarithmic_error", false, false, make<mt::MeanSquaredLogarithmicErrorOp>},
};
constexpr CriterionEntry accuracies[] = {
    {{"sparsecategoricalaccuracy"}, "sparse_categorical_accuracy", true, false, make<mt::SparseCategoricalAccuracyOp>},
    {{"categoricalaccuracy"}, "categorical_accuracy", false, false, make<mt::CategoricalAccuracyOp>},
    {{"binaryaccuracy"}, "binary_accuracy", false, false, make<mt::BinaryAccuracyOp>},
    {{"sparsetopkcategoricalaccuracy"}, "sparse_top_k_categorical_accuracy", true, false, makeTopK<mt::SparseTopKCategoricalAccuracyOp>},
    {{"topkcategoricalaccuracy"}, "top_k_categorical_accuracy", false, false, makeTopK<mt::TopKCategoricalAccuracyOp>},
};

const CriterionEntry *find(llvm::ArrayRef<CriterionEntry> entries, StringRef name) {
  for (const CriterionEntry &entry : entries)
    for (const char *known : entry.names)
      if (known && name == known)
        return &entry;
  return nullptr;
}

std::string namesOf(llvm::ArrayRef<CriterionEntry> entries) {
  std::string names;
  for (const CriterionEntry &entry : entries)
    names += (names.empty() ? "" : ", ") + std::string(entry.metric);
  return names;
}

Value makeTarget(OpBuilder &builder, const Output &output, StringRef name, bool sparse) {
  auto type = cast<RankedTensorType>(output.value.getType());
  Type wanted = sparse ? RankedTensorType::get(type.getShape().drop_back(), builder.getI32Type()) : type.clone(builder.getF32Type());
  return mt::TargetOp::create(builder, named(builder, output.name), wanted, name);
}

// (1 - s) t + s / classes
Value smooth(Criterion &c, Value targets, double smoothing, bool binary) {
  double classes = binary ? 2 : static_cast<double>(cast<RankedTensorType>(targets.getType()).getShape().back());
  return (mt::Expr(c.builder, c.location, targets) * (1 - smoothing) + smoothing / classes).value();
}

} // namespace

std::string parseObject(StringRef text, Json &object) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  Json config = Json::object();
  for (StringRef part : llvm::drop_begin(parts)) {
    auto [key, value] = part.split('=');
    double number;
    if (key.empty() || value.empty())
      return "expected NAME,key=value,..., found '" + text.str() + "'";
    if (value == "true" || value == "false")
      config[key.str()] = value == "true";
    else if (!value.getAsDouble(number))
      config[key.str()] = number;
    else
      config[key.str()] = value.str();
  }
  object = Json{{"class_name", parts[0].str()}, {"config", config}};
  return {};
}

Training::Training(OpBuilder &builder, const Json *compile, const TrainingOptions &options)
    : builder(builder), location(named(builder, "compile_config")), options(options) {
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
  if (const Json *weighted = member(*compile, "weighted_metrics"); weighted && !weighted->is_null() && !weighted->empty())
    problems.push_back("expected no weighted_metrics, found some, which are not supported: compile with metrics alone");
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
    metrics = Json::array();
    SmallVector<StringRef> parts;
    StringRef(options.metrics).split(parts, ',', -1, /*KeepEmpty=*/false);
    for (StringRef part : parts)
      if (part != "none")
        metrics.push_back(part.str());
  }
  if (!options.loss.empty())
    lossWeights = Json();
  if (loss.is_null())
    problems.push_back("expected a compiled model, found no loss: give one, as --loss sparse_categorical_crossentropy,from_logits=true");
  if (optimizer.is_null())
    problems.push_back("expected a compiled model, found no optimizer: give one, as --optimizer adam");
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
  // A list of losses has one for each output; metrics are a list for each output where the items are lists, and else one list for all.
  if (isMetrics && !llvm::any_of(*all, [](const Json &item) { return item.is_array(); }))
    return outputs.size() == 1 || all->size() != outputs.size() ? all : &(*all)[index];
  return index < all->size() ? &(*all)[index] : nullptr;
}

LogicalResult Training::build(ArrayRef<Output> outputs) {
  if (failed(readOptions()))
    return failure();
  bool only = outputs.size() == 1;
  LogicalResult result = success();
  std::vector<Goal> goals;
  for (auto [index, output] : llvm::enumerate(outputs)) {
    Goal &goal = goals.emplace_back(Goal{&output, {}, only ? "" : output.name + "_", ""});
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
    const Json *part = partFor(&metrics, index, outputs, true);
    if (part && !part->is_null() && goal.target && failed(buildMetrics(goal, *part)))
      result = failure();
    mt::OutputOp::create(builder, named(builder, goal.output->name), goal.output->name, goal.output->value);
  }
  if (failed(result))
    return failure();
  return buildOptimizer(builder, named(builder, "optimizer"), optimizer);
}

LogicalResult Training::buildLoss(Goal &goal, const Json &object, double scale, bool only) {
  const Output &output = *goal.output;
  Location place = named(builder, output.name);
  const CriterionEntry *entry = find(losses, objectName(object));
  if (!entry)
    return emitError(place) << "expected a loss of " << namesOf(losses) << ", found "
                            << (object.is_string() ? object.get<std::string>() : textMember(object, "class_name"));
  auto type = cast<RankedTensorType>(output.value.getType());
  if (type.getRank() < 2 || !type.getElementType().isF32())
    return emitError(place) << "expected an output of floats of 2 axes or more with the batch, found " << type;
  Config config(objectConfig(object), [&](const std::string &message) { emitError(place) << "loss: " << message; });
  config.ignore({"name"});
  config.expect("dtype", "float32");
  config.expectAbsent({"ignore_class"});
  config.expect("axis", -1);
  std::string reduction = config.text("reduction", "sum_over_batch_size");
  if (reduction != "sum_over_batch_size" && reduction != "mean" && reduction != "auto")
    config.error("expected the reduction sum_over_batch_size, found " + reduction);
  goal.target = makeTarget(builder, output, only ? "target" : output.name + "_target", entry->sparse);
  goal.lossKind = entry->metric;
  Criterion criterion = {builder, place, output.value, goal.target, config};
  criterion.fromLogits = entry->logits && config.boolean("from_logits", false);
  if (entry->number)
    criterion.number = config.real(entry->number, 1);
  if (double smoothing = config.real("label_smoothing", 0); smoothing != 0)
    criterion.targets = smooth(criterion, goal.target, smoothing, goal.lossKind == "binary_crossentropy");
  config.finish();
  if (config.failed())
    return failure();
  Value values = entry->build(criterion);
  mt::LossOp::create(builder, place, only ? "loss" : output.name + "_loss", values, Value(), mt::Divisor::elements,
                     llvm::APFloat(static_cast<float>(scale)));
  return success();
}

LogicalResult Training::buildMetrics(Goal &goal, const Json &part) {
  LogicalResult result = success();
  for (const Json &metric : part.is_array() ? part : Json::array({part}))
    if (!metric.is_null() && failed(buildMetric(goal, metric)))
      result = failure();
  return result;
}

LogicalResult Training::buildMetric(Goal &goal, const Json &metric) {
  Location place = named(builder, goal.output->name);
  std::string name = objectName(metric), shown = metric.is_string() ? metric.get<std::string>() : textMember(metric, "class_name");
  bool sparse = cast<RankedTensorType>(goal.target.getType()).getElementType().isInteger(32);
  int64_t width = cast<RankedTensorType>(goal.output->value.getType()).getShape().back();
  const CriterionEntry *entry = nullptr;
  std::string title;
  // These two are resolved by the shapes, and keep their short name.
  if (name == "accuracy" || name == "acc") {
    entry = &accuracies[width == 1 ? 2 : sparse ? 0 : 1];
    title = shown;
  } else if (name == "crossentropy" || name == "ce") {
    entry = &losses[width == 1 ? 2 : sparse ? 0 : 1];
    title = shown;
  } else if ((entry = find(accuracies, name)) || (entry = find(losses, name))) {
    title = metric.is_string() ? shown : entry->metric;
  }
  if (!entry || entry->sparse != sparse) {
    if (options.dropUnsupportedMetrics) {
      emitWarning(place) << "the metric " << shown << " is dropped";
      return success();
    }
    if (entry)
      return emitError(place) << "expected a metric of the loss's targets, " << (sparse ? "labels" : "values of the output's shape")
                              << ", found " << shown;
    return emitError(place) << "expected a metric of accuracy, " << namesOf(accuracies) << ", " << namesOf(losses) << ", found " << shown
                            << ": --drop-unsupported-metrics compiles without it";
  }
  Config config(objectConfig(metric), [&](const std::string &message) { emitError(place) << "metric " << shown << ": " << message; });
  title = config.text("name", title);
  config.expect("dtype", "float32");
  if (const Json *dtype = config.find("dtype"); dtype && dtype->is_object())
    config.ignore({"dtype"});
  config.expect("threshold", 0.5);
  config.expect("axis", -1);
  config.expect("label_smoothing", 0);
  Criterion criterion = {builder, place, goal.output->value, goal.target, config};
  criterion.fromLogits = entry->logits && config.boolean("from_logits", false);
  if (entry->number)
    criterion.number = config.real(entry->number, 1);
  Value values = entry->build(criterion);
  // As a loss it is the negative.
  if (llvm::StringRef(entry->metric) == "cosine_similarity")
    values = (-mt::Expr(builder, place, values)).value();
  config.finish();
  if (config.failed())
    return failure();
  title = goal.prefix + title;
  if (unsigned count = names[title]++)
    title += "_" + std::to_string(count);
  mt::MetricOp::create(builder, place, title, values, Value());
  return success();
}

} // namespace mtc::keras
