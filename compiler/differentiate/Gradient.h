// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_DIFFERENTIATE_GRADIENT_H
#define COMPILER_DIFFERENTIATE_GRADIENT_H

#include "dialects/mt/MtDialect.h"

namespace mtc {

// Reverse-mode differentiation: appends to the block of `loss` (tensor<f32>) ops that compute dloss/dvariable times
// `scale` (tensor<f32>; null stands for 1) for each variable. The value is null for a variable without a differentiable
// path to the loss. Only ops on paths between the variables and the loss are differentiated. Fails, with an error at
// the op, if an op on a path has no gradient.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
buildGradients(mlir::OpBuilder &builder, mlir::Value loss, mlir::Value scale, llvm::ArrayRef<mlir::Value> variables);

} // namespace mtc

#endif
