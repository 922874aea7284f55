// SPDX-License-Identifier: Apache-2.0
#include "frontend/training/Criteria.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using llvm::StringRef;

namespace mtc::training {

// Lower case without underscores, so that "SparseCategoricalCrossentropy" and "sparse_categorical_crossentropy" are the
// same name.
std::string plainName(StringRef name) {
  std::string plain;
  for (char c : name)
    if (c != '_')
      plain += llvm::toLower(c);
  return plain;
}

// The name in "mse", {"class_name": "MeanSquaredError", "config": {...}} or {"class_name": "function", "config":
// "mse"}.
std::string objectName(const Json &object) {
  if (object.is_string())
    return plainName(object.get<std::string>());
  std::string name = textMember(object, "class_name");
  return plainName(name == "function" ? textMember(object, "config") : name);
}

bool isCustom(const Json &object) {
  const Json *module = object.is_object() ? member(object, "module") : nullptr;
  if (!module || textMember(object, "class_name") == "function")
    return false; // files of older versions have no modules; functions have none in any version
  StringRef name = module->is_string() ? StringRef(module->get_ref<const std::string &>()) : StringRef();
  return name != "keras" && !name.starts_with("keras.");
}

std::string customText(StringRef what, const Json &object) {
  return "expected " + what.str() + " of Keras, found a class " + textMember(object, "class_name") +
         " that is not Keras': a custom class is Python code, which a file does not have: mtc.fit and mtc.compile "
         "trace the model where it is made (docs/keras-traces.md)";
}

const Json &objectConfig(const Json &object) {
  static const Json empty = Json::object();
  const Json *config = member(object, "config");
  return config && config->is_object() ? *config : empty;
}

namespace {

template <typename Op> Value makeLogits(Criterion &c) {
  return Op::create(c.builder, c.location, c.predictions, c.targets, c.fromLogits);
}
template <typename Op> Value makeWith(Criterion &c) {
  return Op::create(c.builder, c.location, c.predictions, c.targets, llvm::APFloat(static_cast<float>(c.number)));
}
template <typename Op> Value makeTopK(Criterion &c) {
  return Op::create(c.builder, c.location, c.predictions, c.targets, c.config.integer("k", 5));
}
template <typename Op> Value make(Criterion &c) { return Op::create(c.builder, c.location, c.predictions, c.targets); }

constexpr CriterionEntry lossEntries[] = {
    {{"sparsecategoricalcrossentropy"},
     "sparse_categorical_crossentropy",
     true,
     true,
     makeLogits<mt::SparseCategoricalCrossentropyOp>},
    {{"categoricalcrossentropy"}, "categorical_crossentropy", false, true, makeLogits<mt::CategoricalCrossentropyOp>},
    {{"binarycrossentropy", "bce"},
     "binary_crossentropy",
     false,
     true,
     makeLogits<mt::BinaryCrossentropyOp>,
     nullptr,
     true},
    {{"meansquarederror", "mse"}, "mean_squared_error", false, false, make<mt::MeanSquaredErrorOp>, nullptr, true},
    {{"meanabsoluteerror", "mae"}, "mean_absolute_error", false, false, make<mt::MeanAbsoluteErrorOp>, nullptr, true},
    {{"huber"}, "huber", false, false, makeWith<mt::HuberOp>, "delta", true},
    {{"hinge"}, "hinge", false, false, make<mt::HingeOp>, nullptr, true},
    {{"squaredhinge"}, "squared_hinge", false, false, make<mt::SquaredHingeOp>, nullptr, true},
    {{"categoricalhinge"}, "categorical_hinge", false, false, make<mt::CategoricalHingeOp>},
    {{"kldivergence", "kullbackleiblerdivergence", "kld"}, "kl_divergence", false, false, make<mt::KlDivergenceOp>},
    {{"poisson"}, "poisson", false, false, make<mt::PoissonOp>, nullptr, true},
    {{"logcosh", "logcosherror"}, "log_cosh", false, false, make<mt::LogCoshOp>, nullptr, true},
    {{"cosinesimilarity"}, "cosine_similarity", false, false, make<mt::CosineSimilarityOp>},
    {{"meanabsolutepercentageerror", "mape"},
     "mean_absolute_percentage_error",
     false,
     false,
     make<mt::MeanAbsolutePercentageErrorOp>,
     nullptr,
     true},
    {{"meansquaredlogarithmicerror", "msle"},
     "mean_squared_logarithmic_error",
     false,
     false,
     make<mt::MeanSquaredLogarithmicErrorOp>,
     nullptr,
     true},
    {{"binaryfocalcrossentropy"}, "binary_focal_crossentropy", false, true, buildBinaryFocal, nullptr, true},
    {{"categoricalfocalcrossentropy"}, "categorical_focal_crossentropy", false, true, buildCategoricalFocal},
    {{"categoricalgeneralizedcrossentropy"}, "categorical_generalized_cross_entropy", true, false, buildGeneralized},
    {{"dice"}, "dice", false, false, buildDice},
    {{"tversky"}, "tversky", false, false, buildTversky},
};
constexpr CriterionEntry accuracyEntries[] = {
    {{"sparsecategoricalaccuracy"}, "sparse_categorical_accuracy", true, false, make<mt::SparseCategoricalAccuracyOp>},
    {{"categoricalaccuracy"}, "categorical_accuracy", false, false, make<mt::CategoricalAccuracyOp>},
    {{"binaryaccuracy"}, "binary_accuracy", false, false, make<mt::BinaryAccuracyOp>},
    {{"sparsetopkcategoricalaccuracy"},
     "sparse_top_k_categorical_accuracy",
     true,
     false,
     makeTopK<mt::SparseTopKCategoricalAccuracyOp>},
    {{"topkcategoricalaccuracy"}, "top_k_categorical_accuracy", false, false, makeTopK<mt::TopKCategoricalAccuracyOp>},
};

} // namespace

llvm::ArrayRef<CriterionEntry> losses() { return lossEntries; }
llvm::ArrayRef<CriterionEntry> accuracies() { return accuracyEntries; }

const CriterionEntry *findCriterion(llvm::ArrayRef<CriterionEntry> entries, StringRef name) {
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

std::string lossClass(StringRef name) {
  const CriterionEntry *entry = findCriterion(lossEntries, plainName(name));
  if (!entry)
    return name.str();
  if (StringRef(entry->metric) == "kl_divergence")
    return "KLDivergence";
  return llvm::convertToCamelFromSnakeCase(entry->metric, /*capitalizeFirst=*/true);
}

} // namespace mtc::training
