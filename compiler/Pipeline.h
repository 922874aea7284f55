// SPDX-License-Identifier: Apache-2.0
//
// The pipeline from a model to a plan: one table of stages. It drives --stop-after, --dump-stages, timing and the help
// text.
#ifndef COMPILER_PIPELINE_H
#define COMPILER_PIPELINE_H

#include "compiler/Compilation.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace mtc {

struct Stage {
  const char *name;
  const char *help; // one line
  // The passes of the stage. `compilation` outlives them.
  void (*build)(mlir::OpPassManager &passes, Compilation &compilation);
  // What holds from here on. Emits an error where it does not.
  llvm::LogicalResult (*check)(mlir::ModuleOp module);
};

llvm::ArrayRef<Stage> stages();

// Runs one stage: its passes, the verifier, its check. Errors go to the context's diagnostic handler.
llvm::LogicalResult runStage(const Stage &stage, mlir::ModuleOp module, Compilation &compilation);

// The passes of all stages, in order, as --print-ir-after names them.
std::vector<std::string> passNames(mlir::MLIRContext &context, Compilation &compilation);

// Every dialect that text may hold and that stages make.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace mtc

#endif
