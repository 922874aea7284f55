// SPDX-License-Identifier: Apache-2.0
//
// Inputs in the comments of an .mlir file, so that a test is one file:
//
//   // INPUT image = 1 2 3 4          rows of an input, target or sample weight
//   // SET dense/bias = 0.5 -1        value of a variable, set after `init` has run
//
// The first INPUT determines the number of samples.
#ifndef COMPILER_INTERPRET_SCRIPT_H
#define COMPILER_INTERPRET_SCRIPT_H

#include "compiler/interpret/Interpreter.h"
#include "llvm/Support/Error.h"

namespace mtc {

struct Script {
  Tensors inputs, variables; // linear lists of elements
};

// Parses the directives in the text of a file. An error names the line and what was expected.
llvm::Expected<Script> parseScript(llvm::StringRef text);

// Runs `init`, then `programs` in order, each on the same inputs, and prints the outputs, losses and metrics of each
// program, then all variables.
mlir::LogicalResult runScript(mlir::ModuleOp module, const Script &script, llvm::ArrayRef<std::string> programs,
                              Step step, llvm::raw_ostream &out);

} // namespace mtc

#endif
