// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_DIFFERENTIATE_UPDATE_H
#define COMPILER_DIFFERENTIATE_UPDATE_H

#include "dialects/mt/MtDialect.h"

namespace mtc {

// A variable of the plan that belongs to the optimizer.
struct OptimizerVariable {
  std::string name;
  mlir::RankedTensorType type;
  mlir::mt::VariableKind kind;
  double start;                               // initial value of every element
  std::optional<mlir::mt::VariableRole> role; // role in the plan
  std::string of;                             // the model's variable of which this is the average
};

// The optimizer of a model: its variables, and the ops of its step in Keras' order: clip, decay, update, average.
class Optimizer {
public:
  explicit Optimizer(mlir::mt::ModelOp model);

  mlir::Location getLoc() { return op.getLoc(); }
  // Iteration, learning rate (unless a schedule replaces it), state, and the slots of each trainable variable.
  llvm::ArrayRef<OptimizerVariable> variables() const { return owned; }
  std::string iterationName() const { return prefix + "iteration"; }
  mlir::Value readIteration(mlir::OpBuilder &builder);

  // Assigns the trainable variables and the variables of the optimizer, except for the loss scale. `values` and
  // `gradients` belong to the trainable variables. `rate` is the result of the schedule; null: the variable of the
  // learning rate.
  void buildStep(mlir::OpBuilder &builder, llvm::MutableArrayRef<mlir::mt::VariableOp> trainable,
                 llvm::ArrayRef<mlir::Value> values, llvm::SmallVector<mlir::Value> gradients, mlir::Value rate);
  // The factor by which the loss is multiplied before differentiation (docs/precision.md section 3); null unless the
  // precision is f16.
  mlir::Value readLossScale(mlir::OpBuilder &builder);
  // Divides the gradients by the loss scale, computes whether the step is applied (`apply`), and updates the scale.
  void unscale(mlir::OpBuilder &builder, llvm::SmallVectorImpl<mlir::Value> &gradients);
  // Assigns a variable's value after the step, if the step is applied.
  void assign(mlir::OpBuilder &builder, mlir::Location location, llvm::StringRef name, mlir::Value value);
  // Result of the model's schedule; null if the learning rate is a variable.
  mlir::Value getSchedule();

private:
  std::string slotName(mlir::mt::VariableOp variable, llvm::StringRef slot) const;
  std::optional<double> option(llvm::StringRef name);
  void clip(mlir::OpBuilder &builder, llvm::SmallVectorImpl<mlir::Value> &gradients);
  void average(mlir::OpBuilder &builder, mlir::mt::VariableOp variable, mlir::Value iteration, mlir::Value &value);

  mlir::mt::OptimizerOpInterface op;
  std::string prefix;
  bool scaled;       // the loss is scaled
  mlir::Value apply; // tensor<i1>: whether the step is applied; null: always
  llvm::SmallVector<OptimizerVariable> owned;
};

} // namespace mtc

#endif
