// SPDX-License-Identifier: Apache-2.0
//
// Training settings of a model, for all file formats: targets, losses, metrics and the optimizer. Settings from files
// and command lines have the form of Keras' compile_config.
#ifndef FRONTEND_TRAINING_TRAINING_H
#define FRONTEND_TRAINING_TRAINING_H

#include "frontend/training/Criteria.h"
#include "frontend/training/TrainingOptions.h"

namespace mtc::training {

// One output of the model: the name of its layer and its value.
struct Output {
  std::string name;
  mlir::Value value;
  mlir::Value mask = {}; // mask of the steps of a sample that count, [?, T]; null: all steps
};

// Parses "name,key=value,..." of a command line to Keras' object of a loss, an optimizer or a metric. Returns an empty
// text, or the error.
std::string parseObject(llvm::StringRef text, Json &object);

// Parses "accuracy,mae" of a command line to a list; "none" is an empty list.
Json listMetrics(llvm::StringRef text);
// Keras' class name of an optimizer, from any known spelling.
std::string optimizerClass(llvm::StringRef name);

class Training {
public:
  // `compile` is the compile_config of a Keras file; null: none.
  Training(mlir::OpBuilder &builder, const Json *compile, const TrainingOptions &options);

  // Builds the ops. Errors are emitted at the model, and name the setting.
  llvm::LogicalResult build(llvm::ArrayRef<Output> outputs);

  // Whether the optimizer and its slots come from the file.
  bool keepsOptimizer() const { return options.optimizer.empty(); }

private:
  struct Goal { // settings of one output
    const Output *output;
    mlir::Value target;
    mlir::Value sampleWeights; // null without --sample-weights
    std::string prefix;        // prefix of metrics' names; empty if there is one output
    std::string lossKind;
    mlir::Value mask = {}; // weights of steps; null: all steps count
    // The predictions and the targets for losses and metrics: [?, 1] of an output [?].
    mlir::Value predictions = {}, truth = {};
    bool isFlat = false;
    bool isSparse() const; // targets are labels
  };

  llvm::LogicalResult readOptions();
  llvm::LogicalResult checkParts(llvm::ArrayRef<Output> outputs);
  llvm::LogicalResult buildLoss(Goal &goal, const Json &loss, double scale, bool only);
  llvm::LogicalResult buildMetrics(Goal &goal, const Json &metrics, bool weighted);
  llvm::LogicalResult buildMetric(Goal &goal, const Json &metric, bool weighted);
  static const CriterionEntry *resolveMetric(const Goal &goal, const std::string &name, bool isClass); // null: unknown
  // The losses or metrics for one output.
  const Json *partFor(const Json *all, size_t index, llvm::ArrayRef<Output> outputs, bool metrics) const;

  mlir::OpBuilder &builder;
  mlir::Location location;
  const TrainingOptions &options;
  Json loss, metrics, weightedMetrics, optimizer; // null: none
  Json lossWeights;
  std::vector<std::string> problems;
  std::map<std::string, unsigned> names; // names of metrics in use
};

// Builds the optimizer's op from Keras' object.
llvm::LogicalResult buildOptimizer(mlir::OpBuilder &builder, mlir::Location location, const Json &object);

} // namespace mtc::training

#endif
