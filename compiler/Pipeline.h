// SPDX-License-Identifier: Apache-2.0
//
// The pipeline from a model to a plan, as a table of stages. --stop-after, --dump-stages, timing and the help text are
// derived from the table.
#ifndef COMPILER_PIPELINE_H
#define COMPILER_PIPELINE_H

#include "compiler/Compilation.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace mtc {

struct Stage {
  const char *name;
  const char *help; // help text, one line
  // Adds the passes of the stage. `compilation` outlives the passes.
  void (*build)(mlir::OpPassManager &passes, Compilation &compilation);
  // Checks what holds after the stage; emits an error if it does not hold.
  llvm::LogicalResult (*check)(mlir::ModuleOp module);
};

llvm::ArrayRef<Stage> stages();

// Runs one stage: its passes, the verifier, its check. Errors go to the context's diagnostic handler. A fault of a pass
// gives an error that names a reproducer (compiler/Reproducer.h).
llvm::LogicalResult runStage(const Stage &stage, mlir::ModuleOp module, Compilation &compilation);

// Checks a list of --print-ir-before or --print-ir-after: "mt-fuse,mt-shard" or "all". Returns an error; empty: none.
std::string checkPassList(const char *list, mlir::MLIRContext &context, Compilation &compilation);

// Returns `module`, the input of `stage`, as a text for `mt-opt --run-reproducer`, which runs the passes of `stage` on
// it. If `stage` has no passes, the text has the passes of the first later stage that has some.
std::string inputOf(const Stage &stage, mlir::ModuleOp module, Compilation &compilation);

// Registers all dialects that models and stages use.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace mtc

#endif
