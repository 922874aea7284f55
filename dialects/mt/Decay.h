// SPDX-License-Identifier: Apache-2.0
//
// A decay of a variable that is a part of its gradient, as PyTorch's optimizers have it: it is added after the gradient
// has been clipped. A regularizer is a part of the loss, so what it adds is clipped too.
#ifndef DIALECTS_MT_DECAY_H
#define DIALECTS_MT_DECAY_H

#include "mlir/IR/Operation.h"

namespace mlir::mt {

// An f32 of 0 or more, at an mt.variable: so many times the variable is added to its gradient.
inline constexpr llvm::StringLiteral gradientDecayName = "mt.gradient_decay";

// 0 without one.
double gradientDecayOf(Operation *variable);

} // namespace mlir::mt

#endif
