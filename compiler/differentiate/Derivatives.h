// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_DIFFERENTIATE_DERIVATIVES_H
#define COMPILER_DIFFERENTIATE_DERIVATIVES_H

#include "dialects/mt/MtDialect.h"
#include "mlir/IR/IRMapping.h"

namespace mtc {

// The mt.derivative ops of a model and its mt.update, for which programs have backward passes: one for each loss.
class Derivatives {
public:
  explicit Derivatives(mlir::mt::ModelOp model);

  // Appends a backward pass to the program, and maps all derivatives of the op's loss to its results. `values` maps
  // what comes before the op to the program. Does nothing if the op is mapped already.
  mlir::LogicalResult build(mlir::OpBuilder &builder, mlir::mt::DerivativeOp op, mlir::IRMapping &values) const;
  // Replaces each mt.argument of the block by its operand.
  static void removeArguments(mlir::Block &block);

private:
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::mt::DerivativeOp>> ofLoss;
};

} // namespace mtc

#endif
