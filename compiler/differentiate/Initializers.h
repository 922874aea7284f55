// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_DIFFERENTIATE_INITIALIZERS_H
#define COMPILER_DIFFERENTIATE_INITIALIZERS_H

#include "dialects/mt/MtDialect.h"

namespace mtc {

// Initial value of a variable: Keras' initializers on Philox random numbers, with the variable's name as stream.
mlir::Value buildInitialValue(mlir::OpBuilder &builder, mlir::mt::VariableOp variable);
// A tensor of equal elements.
mlir::Value buildFilled(mlir::OpBuilder &builder, mlir::Location location, mlir::RankedTensorType type, double value);

} // namespace mtc

#endif
