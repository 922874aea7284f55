// SPDX-License-Identifier: Apache-2.0
//
// Joins the modules of one model at several sequence lengths: one set of declarations, and programs for each length.
#ifndef COMPILER_DIFFERENTIATE_JOINLENGTHS_H
#define COMPILER_DIFFERENTIATE_JOINLENGTHS_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace mtc {

// Name of a program for a `length` other than the plan's largest length: "train_step_64".
std::string programOfLength(llvm::StringRef program, int64_t length);

// Moves the programs of `other`, the model at `length`, to `module`, the model at the `largest` length. Both modules
// are output of the stage `differentiate`. Fails if the modules differ in anything but the sequence length.
llvm::LogicalResult addLength(mlir::ModuleOp module, int64_t largest, mlir::ModuleOp other, int64_t length);

// Checks that `input`, whose second axis determines the length of a sample, has this axis; null stands for all inputs
// with the length. Fails if there is no such input.
llvm::LogicalResult checkLengthInputs(mlir::ModuleOp module, int64_t largest, int64_t other, const char *input);

} // namespace mtc

#endif
