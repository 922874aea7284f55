// SPDX-License-Identifier: Apache-2.0
#ifndef DIALECTS_MT_READS_H
#define DIALECTS_MT_READS_H

#include "mlir/IR/Operation.h"

namespace mlir::mt {

// Calls `use` for each operand of an op of a model and of the ops in its body, once per use.
inline void forEachRead(Operation *op, llvm::function_ref<void(Value)> use) {
  op->walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), use); });
}

} // namespace mlir::mt

#endif
