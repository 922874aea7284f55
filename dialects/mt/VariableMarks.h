// SPDX-License-Identifier: Apache-2.0
//
// Rates and decays of single variables under a short form of an optimizer, as PyTorch's parameter groups have them. A
// mark is an attribute of mt.variable, a finite f32 of at least 0.
#ifndef DIALECTS_MT_VARIABLEMARKS_H
#define DIALECTS_MT_VARIABLEMARKS_H

#include "mlir/IR/Operation.h"

#include <optional>

namespace mlir::mt {

// Weight decay through the gradient, as in PyTorch's optimizers: the mark times the variable is added to the gradient
// after clipping. (A regularizer's term is part of the loss, so its gradient is clipped too.)
inline constexpr llvm::StringLiteral gradientDecayName = "mt.gradient_decay";
// Factor of the learning rate, also of a scheduled one.
inline constexpr llvm::StringLiteral rateFactorName = "mt.rate_factor";
// Weight decay in the place of the optimizer's.
inline constexpr llvm::StringLiteral weightDecayName = "mt.weight_decay";

inline constexpr llvm::StringLiteral variableMarks[] = {gradientDecayName, rateFactorName, weightDecayName};

// Returns nothing if the variable has no such mark.
std::optional<double> markOf(Operation *variable, llvm::StringRef name);

} // namespace mlir::mt

#endif
