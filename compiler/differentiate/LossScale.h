// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_DIFFERENTIATE_LOSSSCALE_H
#define COMPILER_DIFFERENTIATE_LOSSSCALE_H

#include "dialects/mt/MtDialect.h"

namespace mtc {

// The factor by which the loss is multiplied before differentiation (docs/precision.md section 3), in plans of
// precision f16: its variables, and the ops of a step. In plans of other precisions the functions do nothing.
class LossScale {
public:
  // `prefix`: beginning of the names of the variables, such as "adam/".
  LossScale(mlir::mt::ModelOp model, std::string prefix);

  struct Variable {
    std::string name;
    mlir::RankedTensorType type;
    double start;
  };
  llvm::ArrayRef<Variable> variables() const { return owned; }
  // Null if the loss is not scaled.
  mlir::Value read(mlir::OpBuilder &builder, mlir::Location location) const;
  // Divides the gradients by the scale, updates the scale, and returns whether the step is applied; null: always.
  mlir::Value unscale(mlir::OpBuilder &builder, mlir::Location location,
                      llvm::SmallVectorImpl<mlir::Value> &gradients) const;

private:
  llvm::SmallVector<Variable> owned; // scale, steps since the last change
};

} // namespace mtc

#endif
