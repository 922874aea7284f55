// SPDX-License-Identifier: Apache-2.0
//
// Inputs in the comments of an .mlir file, so that a test is one file:
//
//   // INPUT image = 1 2 3 4          a step's rows of an input, target or sample weight; the number of samples follows
//   from the first
//   // SET dense/bias = 0.5 -1        a variable, after `init` has run
#ifndef COMPILER_INTERPRET_SCRIPT_H
#define COMPILER_INTERPRET_SCRIPT_H

#include "compiler/interpret/Interpreter.h"
#include "llvm/Support/Error.h"

namespace mtc {

struct Script {
  Tensors inputs, variables; // flat
};

// Reads the directives of a file's text. Fails with the line and what was expected there.
llvm::Expected<Script> parseScript(llvm::StringRef text);

// Runs `init`, then `programs` in order, each on the same inputs, and prints outputs, losses and metrics of each, then
// all variables.
mlir::LogicalResult runScript(mlir::ModuleOp module, const Script &script, llvm::ArrayRef<std::string> programs,
                              Step step, llvm::raw_ostream &out);

} // namespace mtc

#endif
