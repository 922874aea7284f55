// SPDX-License-Identifier: Apache-2.0
//
// Faults of the compiler: a pass that leaves IR which does not verify, that fails without an error, or after which the
// IR is not what the stage promises. The error names a file with what the stage was given, which mt-opt runs.
#ifndef COMPILER_REPRODUCER_H
#define COMPILER_REPRODUCER_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

#include <string>
#include <vector>

namespace mtc {

// The module as text. Locations are the names of layers, which kernels are called after.
std::string printedModule(mlir::ModuleOp module, bool locations = false);

// The same, with the passes: `mt-opt --run-reproducer` reads them, and runs them on it.
std::string reproducer(mlir::ModuleOp module, mlir::OpPassManager &passes, bool locations = false);

// Lives while the passes of a stage run on a module.
class FaultFinder {
public:
  FaultFinder(mlir::ModuleOp module, mlir::PassManager &passes);

  // After a failure, of the passes or, where all of them `ran`, of the stage's check. A fault is reported, with the
  // file; what a pass refuses with an error of its own is none. Returns a failure.
  mlir::LogicalResult fail(llvm::StringRef stage, bool ran);

private:
  friend class FaultInstrumentation;

  mlir::OwningOpRef<mlir::ModuleOp> before;
  mlir::PassManager &passes;
  std::vector<std::string> errors; // since the last pass began
  std::string faultyPass;          // empty: none so far
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace mtc

#endif
