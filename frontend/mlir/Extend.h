// SPDX-License-Identifier: Apache-2.0
//
// The start of `--precision f64`: a model, as it was read, is extended (docs/precision.md section 5).
#ifndef FRONTEND_MLIR_EXTEND_H
#define FRONTEND_MLIR_EXTEND_H

#include "mlir/IR/BuiltinOps.h"

namespace mtc {

// Gives a module of f32 the precision f64: each value, variable and constant of f32 becomes one of f64. A number that
// is an attribute, and a constant whose elements are all equal, becomes the shortest decimal that rounds to it: what
// was written as 0.1 is 0.1. Elements of other constants keep their values. A cast of a constant of f64 to f32, in
// which a trace writes the number of its framework, becomes the constant. Reports what f64 does not have: random
// numbers of Threefry.
llvm::LogicalResult extend(mlir::ModuleOp module);

// Reports the first value of f64. In a module of another precision there may be none.
llvm::LogicalResult refuseDoubles(mlir::ModuleOp module);

} // namespace mtc

#endif
