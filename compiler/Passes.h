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

// Bytes of scratch of the kernel that takes most, of a module of plan programs. Code generation, a later stage, knows
// it when it writes the kernels: the pipeline passes the question in. Empty: no kernel takes any.
using KernelScratch = std::function<llvm::FailureOr<int64_t>(mlir::ModuleOp)>;
std::unique_ptr<mlir::Pass> createRecompute(RecomputeOptions options, KernelScratch scratch);
std::unique_ptr<mlir::Pass> createAllocate(AllocateOptions options, KernelScratch scratch);
} // namespace mtc

#endif
