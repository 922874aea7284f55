// SPDX-License-Identifier: Apache-2.0
//
// The passes of the pipeline (Passes.td). A pass's file defines GEN_PASS_DEF_NAME and includes Passes.h.inc again.
#ifndef COMPILER_PASSES_H
#define COMPILER_PASSES_H

#include "dialects/mt/MtDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/Pass/Pass.h"

#include <functional>

namespace mtc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/Passes.h.inc"

// Returns the bytes of scratch memory of the kernel that needs most, in a module of plan programs. Only code
// generation, a later stage, knows this number, so the pipeline passes in a function. Empty: no kernel needs scratch
// memory.
using KernelScratch = std::function<llvm::FailureOr<int64_t>(mlir::ModuleOp)>;
std::unique_ptr<mlir::Pass> createRecompute(RecomputeOptions options, KernelScratch scratch);
std::unique_ptr<mlir::Pass> createAllocate(AllocateOptions options, KernelScratch scratch);
} // namespace mtc

#endif
