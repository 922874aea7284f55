// SPDX-License-Identifier: Apache-2.0
//
// Keras' losses and metrics by name, and the ops of the same meaning.
#ifndef FRONTEND_TRAINING_CRITERIA_H
#define FRONTEND_TRAINING_CRITERIA_H

#include "frontend/Config.h"

#include "dialects/mt/Expr.h"
#include "dialects/mt/MtDialect.h"

namespace mtc::training {

// "SparseCategoricalCrossentropy" and "sparse_categorical_crossentropy" are one name.
std::string plainName(llvm::StringRef name);
// The plain name in "mse", {"class_name": "MeanSquaredError", "config": {...}} or {"class_name": "function", "config":
// "mse"}.
std::string objectName(const Json &object);
// Whether it is an object of a class that Keras does not have, whatever its name: the file says another module.
bool isCustom(const Json &object);
// "...: a custom class is Python code"
std::string customText(llvm::StringRef what, const Json &object);
// Its config; an empty object where there is none.
const Json &objectConfig(const Json &object);

struct Criterion { // one loss or metric at work
  mlir::OpBuilder &builder;
  mlir::Location location;
  mlir::Value predictions, targets;
  Config &config;
  bool fromLogits = false;
  double number = 1;
  bool negative = false; // a function of Keras' losses
};

struct CriterionEntry {
  const char *names[3]; // plain; the first is the one that Keras gives a metric
  const char *metric;   // as Keras names it in its logs
  bool sparse;          // targets are labels
  bool logits;          // has from_logits
  mlir::Value (*build)(Criterion &);
  const char *number = nullptr; // an option, 1 without it
};

llvm::ArrayRef<CriterionEntry> losses();
llvm::ArrayRef<CriterionEntry> accuracies();
// Null where none has the plain name.
const CriterionEntry *findCriterion(llvm::ArrayRef<CriterionEntry> entries, llvm::StringRef name);
// What Keras calls the class of a loss, of any spelling that is known.
std::string lossClass(llvm::StringRef name);
// "accuracy, precision, ..."
std::string namesOf(llvm::ArrayRef<CriterionEntry> entries);

// What one metric reports: sum(weights * values) / sum(weights) over all samples, or a formula of sums (mt.metric), 0
// where nothing is counted.
struct Measure {
  mlir::Value values, weights; // [?, ...]
  mlir::mt::Finalizer finalizer = mlir::mt::Finalizer::mean;
  std::string part; // behind the metric's name
  mlir::mt::Better better = mlir::mt::Better::higher;
};
// Of precision, recall, F1, F-beta and AUC: one measure, or one a class. Empty after an error.
llvm::SmallVector<Measure> buildCounted(llvm::StringRef name, Criterion &criterion);
bool isCounted(llvm::StringRef name);

} // namespace mtc::training

#endif
