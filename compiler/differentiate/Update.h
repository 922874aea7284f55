// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_DIFFERENTIATE_UPDATE_H
#define COMPILER_DIFFERENTIATE_UPDATE_H

#include "dialects/mt/MtDialect.h"

namespace mtc {

// A variable of the plan that the optimizer owns.
struct OptimizerVariable {
  std::string name;
  mlir::RankedTensorType type;
  mlir::mt::VariableKind kind;
  double start;                               // every element
  std::optional<mlir::mt::VariableRole> role; // that the plan names it by
  std::string of;                             // an average: the model's variable
};

// A model's optimizer: the variables that it adds and the step that it takes. Keras' order: clip, decay, update,
// average.
class Optimizer {
public:
  explicit Optimizer(mlir::mt::ModelOp model);

  mlir::Location getLoc() { return op.getLoc(); }
  // Iteration, learning rate (where no schedule replaces it), state, slots of each trainable variable.
  llvm::ArrayRef<OptimizerVariable> variables() const { return owned; }
  std::string iterationName() const { return prefix + "iteration"; }
  mlir::Value readIteration(mlir::OpBuilder &builder);

  // Assigns the trainable variables and all that the optimizer owns (but for the scale). `values` and `gradients` are
  // those of the variables; `rate` is the schedule's value, null for the variable.
  void buildStep(mlir::OpBuilder &builder, llvm::MutableArrayRef<mlir::mt::VariableOp> trainable,
                 llvm::ArrayRef<mlir::Value> values, llvm::SmallVector<mlir::Value> gradients, mlir::Value rate);
  // What the loss is multiplied by before it is differentiated (docs/precision.md section 3); null but for f16.
  mlir::Value readLossScale(mlir::OpBuilder &builder);
  // Divides gradients by the scale, decides whether the step is taken (`apply`) and changes the scale.
  void unscale(mlir::OpBuilder &builder, llvm::SmallVectorImpl<mlir::Value> &gradients);
  // Gives a variable its value after the step, if the step is taken.
  void assign(mlir::OpBuilder &builder, mlir::Location location, llvm::StringRef name, mlir::Value value);
  // The model's schedule, null where the rate is a variable.
  mlir::Value getSchedule();

private:
  std::string slotName(mlir::mt::VariableOp variable, llvm::StringRef slot) const;
  std::optional<double> option(llvm::StringRef name);
  void clip(mlir::OpBuilder &builder, llvm::SmallVectorImpl<mlir::Value> &gradients);
  void average(mlir::OpBuilder &builder, mlir::mt::VariableOp variable, mlir::Value iteration, mlir::Value &value);

  mlir::mt::OptimizerOpInterface op;
  std::string prefix;
  bool scaled;       // the loss
  mlir::Value apply; // tensor<i1>: whether the step is taken; null: always
  llvm::SmallVector<OptimizerVariable> owned;
};

} // namespace mtc

#endif
