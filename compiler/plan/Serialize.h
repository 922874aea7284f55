// SPDX-License-Identifier: Apache-2.0
//
// Converts the plan dialect and machine code to a plan file.
#ifndef COMPILER_PLAN_SERIALIZE_H
#define COMPILER_PLAN_SERIALIZE_H

#include "compiler/Compilation.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace mtc {

// Returns the bytes of the file, with the compilation's machine code, the initial values that `init` does not compute,
// and the archive. The bytes depend only on the module and the compilation. Fails, with an error at the op, if a plan
// file cannot represent an op.
mlir::FailureOr<std::vector<uint8_t>> serializePlan(mlir::ModuleOp module, const Compilation &compilation);

// Adds the pass of the stage `plan`, which sets `compilation.plan`.
void buildPlan(mlir::OpPassManager &passes, Compilation &compilation);

} // namespace mtc

#endif
