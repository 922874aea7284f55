// SPDX-License-Identifier: Apache-2.0
//
// Keras' optimizers by name. Their modules differ by back end, so only the class counts.
#include "frontend/keras/Training.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mtc::keras {
namespace {

struct Options {
  OpBuilder &builder;
  Location location;
  Config &config;
  FloatAttr real(llvm::StringRef key, double fallback) {
    return builder.getF32FloatAttr(static_cast<float>(config.real(key, fallback)));
  }
  UnitAttr flag(llvm::StringRef key) { return config.boolean(key, false) ? builder.getUnitAttr() : UnitAttr(); }
};

void sgd(Options &o) {
  FloatAttr rate = o.real("learning_rate", 0.01), momentum = o.real("momentum", 0);
  UnitAttr nesterov = o.flag("nesterov");
  // Without momentum there is nothing to look ahead with.
  mt::SgdOp::create(o.builder, o.location, rate, momentum, momentum.getValue().isZero() ? UnitAttr() : nesterov);
}

void adam(Options &o) {
  o.config.expect("amsgrad", false);
  mt::AdamOp::create(o.builder, o.location, o.real("learning_rate", 1e-3), o.real("beta_1", 0.9), o.real("beta_2", 0.999),
                     o.real("epsilon", 1e-7));
}

void adamw(Options &o) {
  o.config.expect("amsgrad", false);
  mt::AdamWOp::create(o.builder, o.location, o.real("learning_rate", 1e-3), o.real("weight_decay", 0.004), o.real("beta_1", 0.9),
                      o.real("beta_2", 0.999), o.real("epsilon", 1e-7));
}

void rmsprop(Options &o) {
  mt::RmspropOp::create(o.builder, o.location, o.real("learning_rate", 1e-3), o.real("rho", 0.9), o.real("momentum", 0),
                        o.real("epsilon", 1e-7), o.flag("centered"));
}

void lion(Options &o) {
  mt::LionOp::create(o.builder, o.location, o.real("learning_rate", 1e-3), o.real("beta_1", 0.9), o.real("beta_2", 0.99));
}

struct Entry {
  const char *name;
  void (*build)(Options &);
  bool decays = false; // has a weight_decay of its own
};
constexpr Entry optimizers[] = {{"SGD", sgd}, {"Adam", adam}, {"AdamW", adamw, true}, {"RMSprop", rmsprop}, {"Lion", lion}};

} // namespace

LogicalResult buildOptimizer(OpBuilder &builder, Location location, const Json &object) {
  static const Json empty = Json::object();
  std::string name = object.is_string() ? object.get<std::string>() : textMember(object, "class_name");
  const Json *given = member(object, "config");
  Config config(given ? *given : empty, [&](const std::string &message) { emitError(location) << message; });
  // The name is the class's in ours; a momentum is used by none that does not ask for it.
  config.ignore({"name", "ema_momentum", "ema_overwrite_frequency", "jit_compile", "is_legacy_optimizer"});
  config.expectAbsent({"clipnorm", "global_clipnorm", "clipvalue", "loss_scale_factor", "gradient_accumulation_steps"});
  config.expect("use_ema", false);
  if (const Json *rate = config.find("learning_rate"); rate && rate->is_object()) {
    config.error("expected learning_rate to be a number, found the schedule " + textMember(*rate, "class_name"));
    return failure();
  }
  std::string names;
  for (const Entry &entry : optimizers) {
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
    if (!llvm::StringRef(name).equals_insensitive(entry.name))
      continue;
    Options options = {builder, location, config};
    entry.build(options);
    if (!entry.decays)
      config.expectAbsent({"weight_decay"});
    config.finish();
    return success(!config.failed());
  }
  return emitError(location) << "expected an optimizer of " << names << ", found " << (name.empty() ? describe(object) : name);
}

} // namespace mtc::keras
