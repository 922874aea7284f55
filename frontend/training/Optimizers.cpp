// SPDX-License-Identifier: Apache-2.0
//
// Keras' optimizers by name. Their modules differ between back ends, so only the class name counts.
#include "frontend/training/Criteria.h"
#include "frontend/training/Training.h"
#include "runtime/support/suggest.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mtc::training {
namespace {

// A class of Keras and its mt op. Options have the same names and defaults in both.
struct Entry {
  const char *className, *op;
  const char *numbers[6];
  const char *flags[2];
};
constexpr Entry optimizers[] = {
    {"SGD", "mt.sgd", {"momentum"}, {"nesterov"}},
    {"Adam", "mt.adam", {"beta_1", "beta_2", "epsilon"}, {"amsgrad"}},
    {"AdamW", "mt.adamw", {"beta_1", "beta_2", "epsilon"}, {"amsgrad"}},
    {"Adamax", "mt.adamax", {"beta_1", "beta_2", "epsilon"}, {}},
    {"Nadam", "mt.nadam", {"beta_1", "beta_2", "epsilon"}, {}},
    {"LAMB", "mt.lamb", {"beta_1", "beta_2", "epsilon"}, {}},
    {"RMSprop", "mt.rmsprop", {"rho", "momentum", "epsilon"}, {"centered"}},
    {"Adagrad", "mt.adagrad", {"initial_accumulator_value", "epsilon"}, {}},
    {"Adadelta", "mt.adadelta", {"rho", "epsilon"}, {}},
    {"Lion", "mt.lion", {"beta_1", "beta_2"}, {}},
};
// Options of every optimizer.
constexpr const char *shared[] = {"weight_decay", "clipnorm", "global_clipnorm", "clipvalue"};
// Schedules of the learning rate.
constexpr Entry schedules[] = {
    {"ExponentialDecay", "mt.exponential_decay", {"initial_learning_rate", "decay_steps", "decay_rate"}, {"staircase"}},
    {"InverseTimeDecay",
     "mt.inverse_time_decay",
     {"initial_learning_rate", "decay_steps", "decay_rate"},
     {"staircase"}},
    {"PolynomialDecay",
     "mt.polynomial_decay",
     {"initial_learning_rate", "decay_steps", "end_learning_rate", "power"},
     {"cycle"}},
    {"CosineDecay",
     "mt.cosine_decay",
     {"initial_learning_rate", "decay_steps", "alpha", "warmup_target", "warmup_steps"},
     {}},
};

void addOptions(OpBuilder &builder, OperationState &state, Config &config, ArrayRef<const char *> numbers,
                ArrayRef<const char *> flags) {
  for (const char *key : numbers)
    if (key && config.find(key))
      state.addAttribute(key, builder.getF32FloatAttr(static_cast<float>(config.real(key))));
  for (const char *key : flags)
    if (key && config.boolean(key, false))
      state.addAttribute(key, builder.getUnitAttr());
}

void addPieces(OpBuilder &builder, OperationState &state, Config &config) {
  SmallVector<float> values;
  const Json *list = config.find("values");
  for (const Json &value : list && list->is_array() ? *list : Json::array())
    values.push_back(value.is_number() ? value.get<float>() : 0);
  SmallVector<int64_t> boundaries = config.integers("boundaries");
  if (values.size() != boundaries.size() + 1)
    config.error("expected one value more than boundaries, found " + std::to_string(values.size()));
  state.addAttribute("boundaries", builder.getDenseI64ArrayAttr(boundaries));
  state.addAttribute("values", builder.getDenseF32ArrayAttr(values));
}

// Builds the learning rate of a step; null after an error.
Value buildSchedule(OpBuilder &builder, Location location, const Json &object) {
  std::string name = textMember(object, "class_name");
  const Json *settings = member(object, "config");
  Config config(settings ? *settings : object,
                [&](const std::string &message) { emitError(location) << name << ": " << message; });
  config.ignore({"name"});
  std::string op = name == "PiecewiseConstantDecay" ? "mt.piecewise_constant_decay" : "";
  for (const Entry &entry : schedules)
    if (name == entry.className)
      op = entry.op;
  if (op.empty()) {
    emitError(location) << "expected learning_rate to be a number or a schedule that is supported, found "
                        << describe(object);
    return {};
  }
  Value step = mt::IterationOp::create(builder, location, RankedTensorType::get({}, builder.getI32Type()));
  OperationState state(location, op, ValueRange(step), TypeRange(RankedTensorType::get({}, builder.getF32Type())));
  for (const Entry &entry : schedules)
    if (name == entry.className)
      addOptions(builder, state, config, entry.numbers, entry.flags);
  if (name == "PiecewiseConstantDecay")
    addPieces(builder, state, config);
  config.finish();
  return config.failed() ? Value() : builder.create(state)->getResult(0);
}

LogicalResult build(OpBuilder &builder, Location location, const Entry &entry, Config &config) {
  OperationState state(location, entry.op);
  if (const Json *rate = config.find("learning_rate"); rate && rate->is_object()) {
    Value schedule = buildSchedule(builder, location, *rate);
    if (!schedule)
      return failure();
    state.addOperands(schedule);
  } else {
    addOptions(builder, state, config, {"learning_rate"}, {});
  }
  addOptions(builder, state, config, entry.numbers, entry.flags);
  addOptions(builder, state, config, shared, {});
  // Nesterov momentum needs a momentum.
  if (state.attributes.get("nesterov") && (!config.find("momentum") || config.real("momentum") == 0))
    state.attributes.erase("nesterov");
  if (!state.attributes.get("amsgrad"))
    config.expect("amsgrad", false);
  config.expectAbsent({"loss_scale_factor", "gradient_accumulation_steps"});
  if (config.boolean("use_ema", false)) {
    state.addAttribute("ema_momentum", builder.getF32FloatAttr(static_cast<float>(config.real("ema_momentum", 0.99))));
    if (config.find("ema_overwrite_frequency"))
      state.addAttribute("ema_overwrite_frequency",
                         builder.getI64IntegerAttr(config.integer("ema_overwrite_frequency")));
  }
  config.finish();
  if (config.failed())
    return failure();
  builder.create(state);
  return success();
}

} // namespace

std::string optimizerClass(llvm::StringRef name) {
  for (const Entry &entry : optimizers)
    if (name.equals_insensitive(entry.className))
      return llvm::StringRef(entry.className) == "LAMB" ? "Lamb" : entry.className;
  return name.str();
}

LogicalResult buildOptimizer(OpBuilder &builder, Location location, const Json &object) {
  static const Json empty = Json::object();
  if (isCustom(object))
    return emitError(location) << customText("an optimizer", object);
  std::string name = object.is_string() ? object.get<std::string>() : textMember(object, "class_name");
  const Json *settings = member(object, "config");
  Config config(settings ? *settings : empty, [&](const std::string &message) { emitError(location) << message; });
  // The op's name is that of the class. ema_momentum has an effect only with use_ema.
  config.ignore({"name", "ema_momentum", "ema_overwrite_frequency", "jit_compile", "is_legacy_optimizer"});
  std::vector<std::string> names;
  for (const Entry &entry : optimizers) {
    if (llvm::StringRef(name).equals_insensitive(entry.className))
      return build(builder, location, entry, config);
    names.push_back(entry.className);
  }
  return emitError(location) << "expected an optimizer of " << llvm::join(names, ", ") << ", found "
                             << (name.empty() ? describe(object) : name) << mtrun::didYouMean(name, names);
}

} // namespace mtc::training
