// SPDX-License-Identifier: Apache-2.0
//
// How a model of any format is trained: targets, losses, metrics and the optimizer. What a file or a command line says
// of them has the form of Keras' compile_config.
#ifndef FRONTEND_TRAINING_TRAINING_H
#define FRONTEND_TRAINING_TRAINING_H

#include "frontend/training/Criteria.h"
#include "frontend/training/TrainingOptions.h"

namespace mtc::training {

// One output of the model: the name of its layer, its value.
struct Output {
  std::string name;
  mlir::Value value;
  mlir::Value mask = {}; // which steps of a sample count, [?, T]; null: all
};

// "name,key=value,..." of a command line as Keras' object of a loss, an optimizer or a metric. Empty on success.
std::string parseObject(llvm::StringRef text, Json &object);

// "accuracy,mae" of a command line as a list; "none" gives an empty one.
Json listMetrics(llvm::StringRef text);
// What Keras calls the class of an optimizer, of any spelling that is known.
std::string optimizerClass(llvm::StringRef name);

class Training {
public:
  // `compile` is the compile_config of a file of Keras; null where there is none.
  Training(mlir::OpBuilder &builder, const Json *compile, const TrainingOptions &options);

  // Makes the ops. Errors are at `model`, and name what they speak of.
  llvm::LogicalResult build(llvm::ArrayRef<Output> outputs);

  // The optimizer and its slots come from the file.
  bool keepsOptimizer() const { return options.optimizer.empty(); }

private:
  struct Goal { // of one output
    const Output *output;
    mlir::Value target;
    mlir::Value sampleWeights; // null without --sample-weights
    std::string prefix;        // of metrics' names, where there are several outputs
    std::string lossKind;
    mlir::Value mask = {}; // weights of steps; null where all count
    bool isSparse() const; // targets are labels
  };

  llvm::LogicalResult readOptions();
  llvm::LogicalResult checkParts(llvm::ArrayRef<Output> outputs);
  llvm::LogicalResult buildLoss(Goal &goal, const Json &loss, double scale, bool only);
  llvm::LogicalResult buildMetrics(Goal &goal, const Json &metrics, bool weighted);
  llvm::LogicalResult buildMetric(Goal &goal, const Json &metric, bool weighted);
  static const CriterionEntry *resolveMetric(const Goal &goal, const std::string &name, bool isClass); // or null
  // The part of losses or metrics that is for one output.
  const Json *partFor(const Json *all, size_t index, llvm::ArrayRef<Output> outputs, bool metrics) const;

  mlir::OpBuilder &builder;
  mlir::Location location;
  const TrainingOptions &options;
  Json loss, metrics, weightedMetrics, optimizer; // null: none
  Json lossWeights;
  std::vector<std::string> problems;
  std::map<std::string, unsigned> names; // of metrics
};

// Makes the optimizer's op from Keras' object.
llvm::LogicalResult buildOptimizer(mlir::OpBuilder &builder, mlir::Location location, const Json &object);

} // namespace mtc::training

#endif
