// SPDX-License-Identifier: Apache-2.0
//
// The passes of the pipeline (Passes.td). A pass's file defines GEN_PASS_DEF_NAME and includes Passes.h.inc again.
#ifndef COMPILER_PASSES_H
#define COMPILER_PASSES_H

#include "dialects/mt/MtDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/Pass/Pass.h"

namespace mtc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/Passes.h.inc"
} // namespace mtc

#endif
