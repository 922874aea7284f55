// SPDX-License-Identifier: Apache-2.0
//
// Weight decay through the gradient, as in PyTorch's optimizers: decay times the variable is added to the gradient
// after clipping. (A regularizer's term is part of the loss, so its gradient is clipped too.)
#ifndef DIALECTS_MT_DECAY_H
#define DIALECTS_MT_DECAY_H

#include "mlir/IR/Operation.h"

namespace mlir::mt {

// Attribute of an mt.variable: the decay, an f32 of at least 0.
inline constexpr llvm::StringLiteral gradientDecayName = "mt.gradient_decay";

// Returns 0 if the variable has no such attribute.
double gradientDecayOf(Operation *variable);

} // namespace mlir::mt

#endif
