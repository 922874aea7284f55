// SPDX-License-Identifier: Apache-2.0
//
// Keras' losses and metrics by name, and the mt ops that compute them.
#ifndef FRONTEND_TRAINING_CRITERIA_H
#define FRONTEND_TRAINING_CRITERIA_H

#include "frontend/Config.h"

#include "dialects/mt/Expr.h"
#include "dialects/mt/MtDialect.h"

namespace mtc::training {

// Lower case without underscores, so that "SparseCategoricalCrossentropy" and "sparse_categorical_crossentropy" are the
// same name.
std::string plainName(llvm::StringRef name);
// The plain name in "mse", {"class_name": "MeanSquaredError", "config": {...}} or {"class_name": "function", "config":
// "mse"}.
std::string objectName(const Json &object);
// Whether the object is of a class that is not Keras' own, whatever its name: the file states another module.
bool isCustom(const Json &object);
// Text of an error: "...: a custom class is Python code".
std::string customText(llvm::StringRef what, const Json &object);
// The config of an object; an empty object if it has none.
const Json &objectConfig(const Json &object);

constexpr double kerasEpsilon = 1e-7; // keras.config.epsilon()
mlir::mt::Expr reshape(const mlir::mt::Expr &value, llvm::ArrayRef<int64_t> shape);
// A column of [?, C]: [?, 1].
mlir::mt::Expr columnOf(const mlir::mt::Expr &value, int64_t index);

struct Criterion { // one loss or metric while its ops are built
  mlir::OpBuilder &builder;
  mlir::Location location;
  mlir::Value predictions, targets;
  Config &config;
  bool fromLogits = false;
  double number = 1;
  bool negative = false;    // requested as a function of Keras' losses, whose sign is negative
  mlir::Value weights = {}; // of the elements of the predictions, for metrics that count them; null: 1
  bool isOne = false;       // the loss is one number of all samples, which each of them has as its value

  mlir::mt::Expr prediction() const { return {builder, location, predictions}; }
  mlir::mt::Expr truth() const { return {builder, location, targets}; }
};

struct CriterionEntry {
  const char *names[3]; // plain names; the first is the name that Keras gives a metric
  const char *metric;   // name of the metric in Keras' logs
  bool sparse;          // targets are labels
  bool logits;          // has the option from_logits
  mlir::Value (*build)(Criterion &);
  const char *number = nullptr; // name of a numeric option, whose default is 1
  bool averages = false;        // the mean over the last axis
};

// Losses that are formulas (Losses.cpp). Null after an error.
mlir::Value buildBinaryFocal(Criterion &criterion);
mlir::Value buildCategoricalFocal(Criterion &criterion);
mlir::Value buildGeneralized(Criterion &criterion);
mlir::Value buildDice(Criterion &criterion);
mlir::Value buildTversky(Criterion &criterion);

llvm::ArrayRef<CriterionEntry> losses();
llvm::ArrayRef<CriterionEntry> accuracies();
// Null if no entry has the plain name.
const CriterionEntry *findCriterion(llvm::ArrayRef<CriterionEntry> entries, llvm::StringRef name);
// Keras' class name of a loss, from any known spelling.
std::string lossClass(llvm::StringRef name);
// Text such as "accuracy, precision, ...".
std::string namesOf(llvm::ArrayRef<CriterionEntry> entries);

// A reported metric: sum(weights * values) / sum(weights) over all samples, or a function of sums (mt.metric); 0 if
// nothing is counted.
struct Measure {
  mlir::Value values, weights; // [?, ...]
  mlir::mt::Finalizer finalizer = mlir::mt::Finalizer::mean;
  std::string part = {}; // suffix of the metric's name
  mlir::mt::Better better = mlir::mt::Better::higher;
  llvm::SmallVector<double> parameters = {}; // of the finalizer
  bool wholeWeights = false;                 // weights of samples are integers, as Keras casts them
};
// Builds a metric that counts predictions, such as precision, AUC or IoU, or is another function of sums: one measure,
// or one per class or threshold. Empty after an error.
llvm::SmallVector<Measure> buildCounted(llvm::StringRef name, Criterion &criterion);
bool isCounted(llvm::StringRef name);
constexpr const char *countedMetrics[] = {"precision",
                                          "recall",
                                          "true_positives",
                                          "true_negatives",
                                          "false_positives",
                                          "false_negatives",
                                          "sensitivity_at_specificity",
                                          "specificity_at_sensitivity",
                                          "precision_at_recall",
                                          "recall_at_precision",
                                          "f1_score",
                                          "fbeta_score",
                                          "auc",
                                          "iou",
                                          "binary_iou",
                                          "mean_iou",
                                          "one_hot_iou",
                                          "one_hot_mean_iou",
                                          "r2_score",
                                          "pearson_correlation",
                                          "concordance_correlation"};
constexpr const char *rootMeanSquaredError = "root_mean_squared_error";
// (1 - s) t + s / classes
mlir::Value smooth(Criterion &criterion, mlir::Value targets, double smoothing, bool binary);
// Whether a counted metric takes labels as targets of predictions of one more axis, with this config.
bool takesLabels(llvm::StringRef name, const Json &config);
// Metrics that do not count by thresholds (Scores.cpp): IoU of any kind, R2, correlations.
llvm::SmallVector<Measure> buildIou(llvm::StringRef name, Criterion &criterion);
llvm::SmallVector<Measure> buildDetermination(Criterion &criterion);
llvm::SmallVector<Measure> buildCorrelation(Criterion &criterion, bool concordance);

// The metric of an object of Keras' classes, without a name: one measure or more; empty after an error in `config`.
llvm::SmallVector<Measure> buildKerasMetric(const Json &object, const CriterionEntry *entry, Criterion &criterion);
// The criterion that a class of Keras' metrics is the mean of; null: another class, or none.
const CriterionEntry *criterionOfClass(llvm::StringRef plainName);
// Weighs a measure by samples, [?] or the shape of its values, and reports it.
void report(mlir::OpBuilder &builder, mlir::Location location, llvm::StringRef title, Measure &measure,
            mlir::Value samples);

} // namespace mtc::training

#endif
