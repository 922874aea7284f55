// SPDX-License-Identifier: Apache-2.0
//
// Every pass, in the order of the road. Each has a source file and a lit test of its name.
#ifndef COMPILER_PASSES_TD
#define COMPILER_PASSES_TD

include "mlir/Pass/PassBase.td"

// differentiate
def Decompose : Pass<"mt-decompose", "::mlir::ModuleOp"> {
  let summary = "Replace composites (softmax, losses, metrics) by the ops that they stand for";
  let dependentDialects = ["::mlir::mt::MtDialect"];
}
#endif
