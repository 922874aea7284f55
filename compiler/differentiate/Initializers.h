// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_DIFFERENTIATE_INITIALIZERS_H
#define COMPILER_DIFFERENTIATE_INITIALIZERS_H

#include "dialects/mt/MtDialect.h"

namespace mtc {

// The variable's first value: Keras' initialisers on Philox numbers whose stream is the variable's name.
mlir::Value buildInitialValue(mlir::OpBuilder &builder, mlir::mt::VariableOp variable);
// Every element the same.
mlir::Value buildFilled(mlir::OpBuilder &builder, mlir::Location location, mlir::RankedTensorType type, double value);

} // namespace mtc

#endif
