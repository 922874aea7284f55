// SPDX-License-Identifier: Apache-2.0
//
// The mark of a tail: a sum over the batch that, on GPUs, the last blocks of the kernel or launch before it compute,
// which is its head (docs/gpu-code.md, "Tails"). On CPUs it is a launch of its own, after a barrier of the device.
// mt-schedule marks kernels, and mt-allocate their launches.
#ifndef DIALECTS_MT_TAILS_H
#define DIALECTS_MT_TAILS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace mlir::mt {

inline constexpr llvm::StringLiteral tailAttribute = "mt.tail";
inline bool isTail(Operation *op) { return op->hasAttr(tailAttribute); }
inline void markTail(Operation *op) { op->setDiscardableAttr(tailAttribute, UnitAttr::get(op->getContext())); }

} // namespace mlir::mt

#endif
