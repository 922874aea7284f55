// SPDX-License-Identifier: Apache-2.0
#ifndef DIALECTS_MT_READS_H
#define DIALECTS_MT_READS_H

#include "mlir/IR/Operation.h"

namespace mlir::mt {

// What an op of a model reads, each value as often as it is read: its operands and, of a loop, those of its body.
inline void forEachRead(Operation *op, llvm::function_ref<void(Value)> use) {
  op->walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), use); });
}

} // namespace mlir::mt

#endif
