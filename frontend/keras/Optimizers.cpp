// SPDX-License-Identifier: Apache-2.0
//
// Keras' optimizers by name. Their modules differ by back end, so only the class counts.
#include "frontend/keras/Training.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mtc::keras {
namespace {

// A class of Keras' and the op of the same meaning. The options have the same names and defaults in both.
struct Entry {
  const char *className, *op;
  const char *numbers[6];
  const char *flags[2];
};
constexpr Entry optimizers[] = {
    {"SGD", "mt.sgd", {"learning_rate", "momentum"}, {"nesterov"}},
    {"Adam", "mt.adam", {"learning_rate", "beta_1", "beta_2", "epsilon"}, {}},
    {"AdamW", "mt.adamw", {"learning_rate", "weight_decay", "beta_1", "beta_2", "epsilon"}, {}},
    {"RMSprop", "mt.rmsprop", {"learning_rate", "rho", "momentum", "epsilon"}, {"centered"}},
    {"Lion", "mt.lion", {"learning_rate", "beta_1", "beta_2"}, {}},
};

LogicalResult build(OpBuilder &builder, Location location, const Entry &entry, Config &config) {
  OperationState state(location, entry.op);
  for (const char *key : entry.numbers)
    if (key && config.find(key))
      state.addAttribute(key, builder.getF32FloatAttr(static_cast<float>(config.real(key))));
  bool still = !config.find("momentum") || config.real("momentum") == 0;
  for (const char *key : entry.flags)
    // Without momentum there is nothing to look ahead with.
    if (key && config.boolean(key, false) && !(llvm::StringRef(key) == "nesterov" && still))
      state.addAttribute(key, builder.getUnitAttr());
  config.expect("amsgrad", false);
  config.expectAbsent({"clipnorm", "global_clipnorm", "clipvalue", "loss_scale_factor", "gradient_accumulation_steps"});
  if (llvm::none_of(entry.numbers, [](const char *key) { return key && llvm::StringRef(key) == "weight_decay"; }))
    config.expectAbsent({"weight_decay"});
  config.expect("use_ema", false);
  config.finish();
  if (config.failed())
    return failure();
  builder.create(state);
  return success();
}

} // namespace

LogicalResult buildOptimizer(OpBuilder &builder, Location location, const Json &object) {
  static const Json empty = Json::object();
  std::string name = object.is_string() ? object.get<std::string>() : textMember(object, "class_name");
  const Json *given = member(object, "config");
  Config config(given ? *given : empty, [&](const std::string &message) { emitError(location) << message; });
  // The name is the class's in ours; the momentum of averages is used by none that does not ask for them.
  config.ignore({"name", "ema_momentum", "ema_overwrite_frequency", "jit_compile", "is_legacy_optimizer"});
  if (const Json *rate = config.find("learning_rate"); rate && rate->is_object()) {
    config.error("expected learning_rate to be a number, found the schedule " + textMember(*rate, "class_name"));
    return failure();
  }
  std::string names;
  for (const Entry &entry : optimizers) {
    if (llvm::StringRef(name).equals_insensitive(entry.className))
      return build(builder, location, entry, config);
    names += (names.empty() ? "" : ", ") + std::string(entry.className);
  }
  return emitError(location) << "expected an optimizer of " << names << ", found " << (name.empty() ? describe(object) : name);
}

} // namespace mtc::keras
