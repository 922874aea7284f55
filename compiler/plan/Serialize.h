// SPDX-License-Identifier: Apache-2.0
//
// The plan dialect and machine code as a plan file.
#ifndef COMPILER_PLAN_SERIALIZE_H
#define COMPILER_PLAN_SERIALIZE_H

#include "compiler/Compilation.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace mtc {

// The bytes of the file, with the compilation's code, the values that variables start with where `init` does not
// compute them, and the archive. The same module and compilation give the same bytes. An error at the op that a plan
// cannot hold.
mlir::FailureOr<std::vector<uint8_t>> serializePlan(mlir::ModuleOp module, const Compilation &compilation);

// The pass of the stage plan: it fills `compilation.plan`.
void buildPlan(mlir::OpPassManager &passes, Compilation &compilation);

} // namespace mtc

#endif
