// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_DIFFERENTIATE_DECLARATIONS_H
#define COMPILER_DIFFERENTIATE_DECLARATIONS_H

#include "compiler/differentiate/LossScale.h"

namespace mtc {

// The variable with role(iteration); null if there is none.
mlir::mt::VariableOp findIteration(mlir::mt::ModelOp model);
// Builds the declarations of the variables of a model and of its loss scale. Fails, with an error at the model, if both
// have a variable of one name.
mlir::LogicalResult declareVariables(mlir::OpBuilder &builder, mlir::mt::ModelOp model, const LossScale &scale);
// Builds the assignments of the first values, in the order of the declarations.
void assignFirstValues(mlir::OpBuilder &builder, mlir::mt::ModelOp model, const LossScale &scale);

} // namespace mtc

#endif
