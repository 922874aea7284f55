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

struct Criterion { // one loss or metric while its ops are built
  mlir::OpBuilder &builder;
  mlir::Location location;
  mlir::Value predictions, targets;
  Config &config;
  bool fromLogits = false;
  double number = 1;
  bool negative = false; // requested as a function of Keras' losses, whose sign is negative
};

struct CriterionEntry {
  const char *names[3]; // plain names; the first is the name that Keras gives a metric
  const char *metric;   // name of the metric in Keras' logs
  bool sparse;          // targets are labels
  bool logits;          // has the option from_logits
  mlir::Value (*build)(Criterion &);
  const char *number = nullptr; // name of a numeric option, whose default is 1
};

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
  std::string part; // suffix of the metric's name
  mlir::mt::Better better = mlir::mt::Better::higher;
};
// Builds precision, recall, F1, F-beta or AUC: one measure, or one per class. Empty after an error.
llvm::SmallVector<Measure> buildCounted(llvm::StringRef name, Criterion &criterion);
bool isCounted(llvm::StringRef name);

} // namespace mtc::training

#endif
