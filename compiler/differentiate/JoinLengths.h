// SPDX-License-Identifier: Apache-2.0
//
// One model at several lengths of its sequences becomes one module: declarations, and programs of each length.
#ifndef COMPILER_DIFFERENTIATE_JOINLENGTHS_H
#define COMPILER_DIFFERENTIATE_JOINLENGTHS_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace mtc {

// What the programs of a plan are called where they are of `length`, which is not its largest: "train_step_64".
std::string programOfLength(llvm::StringRef program, int64_t length);

// Moves the programs of `other`, the model at `length`, to `module`, the model at the `largest` length; both are as
// `differentiate` leaves them. An error where something else than the length of sequences differs.
llvm::LogicalResult addLength(mlir::ModuleOp module, int64_t largest, mlir::ModuleOp other, int64_t length);

// `input` is the one that says how long a sample is; null: all that have the length. An error where there is none.
llvm::LogicalResult checkLengthInputs(mlir::ModuleOp module, int64_t largest, int64_t other, const char *input);

} // namespace mtc

#endif
