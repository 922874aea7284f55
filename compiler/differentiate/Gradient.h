// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_DIFFERENTIATE_GRADIENT_H
#define COMPILER_DIFFERENTIATE_GRADIENT_H

#include "dialects/mt/MtDialect.h"

namespace mtc {

// Reverse mode: appends to the block of `loss` (tensor<f32>) the ops of dloss/dvariable times `scale` (tensor<f32>;
// null: 1) for each variable; a null value where no differentiable path leads from it to the loss. Only ops on such
// paths are differentiated. Fails, with an error at the op, where an op on a path has no gradient.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
buildGradients(mlir::OpBuilder &builder, mlir::Value loss, mlir::Value scale, llvm::ArrayRef<mlir::Value> variables);

} // namespace mtc

#endif
