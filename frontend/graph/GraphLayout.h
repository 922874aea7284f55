// SPDX-License-Identifier: Apache-2.0
//
// The pass `graph-layout`: ops of the dialect `graph` become ops of `mt`, on tensors whose layouts are decided here.
#ifndef FRONTEND_GRAPH_GRAPHLAYOUT_H
#define FRONTEND_GRAPH_GRAPHLAYOUT_H

#include "mlir/IR/BuiltinOps.h"

namespace mtc {

// Whether the module has ops of the dialect, or says that it has.
bool hasGraph(mlir::ModuleOp module);
// Afterwards it has none. Reports every op that `mt` cannot do, but none that depends on such an op.
llvm::LogicalResult lowerGraph(mlir::ModuleOp module);
// For mt-opt.
void registerGraphLayout();

} // namespace mtc

#endif
