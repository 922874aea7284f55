// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/Export.h"
#include "frontend/training/Training.h"

namespace mtc::keras {

using namespace training;

namespace {

// {"class_name": "adam", "config": {...}} with Keras' own class name, in Keras' serialization format.
Json keep(const std::string &text, const char *module, std::string (*className)(llvm::StringRef)) {
  Json object;
  parseObject(text, object); // the text was validated before
  Json config = object["config"];
  for (auto &[key, value] :
       config.items()) // integers for options that Keras accepts only as integers, floats for all others
    if (value.is_number() && key != "ema_overwrite_frequency")
      value = value.get<double>();
  return {{"module", module},
          {"class_name", className(textMember(object, "class_name"))},
          {"config", config},
          {"registered_name", nullptr}};
}

} // namespace

void replaceTraining(const TrainingOptions &options, Json &model) {
  Json &compile = model["compile_config"];
  if (!compile.is_object() || compile.empty())
    compile = Json{
        {"optimizer", nullptr},        {"loss", nullptr},      {"loss_weights", nullptr},  {"metrics", nullptr},
        {"weighted_metrics", nullptr}, {"run_eagerly", false}, {"steps_per_execution", 1}, {"jit_compile", "auto"}};
  if (!options.optimizer.empty())
    compile["optimizer"] = keep(options.optimizer, "keras.optimizers", optimizerClass);
  if (!options.loss.empty()) {
    compile["loss"] = keep(options.loss, "keras.losses", lossClass);
    compile["loss_weights"] = nullptr;
  }
  if (!options.metrics.empty()) {
    compile["metrics"] = listMetrics(options.metrics);
    if (compile["metrics"].empty())
      compile["metrics"] = nullptr;
  }
}

} // namespace mtc::keras
