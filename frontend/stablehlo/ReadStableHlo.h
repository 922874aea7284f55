// SPDX-License-Identifier: Apache-2.0
//
// A function in StableHLO's generic text to a module with one mt.model.
#ifndef FRONTEND_STABLEHLO_READSTABLEHLO_H
#define FRONTEND_STABLEHLO_READSTABLEHLO_H

#include "frontend/NamedTensor.h"
#include "frontend/mlir/Diagnostics.h"
#include "frontend/training/TrainingOptions.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mtc {

// Text that has ops of StableHLO.
bool isStableHlo(llvm::StringRef text);

// As readKerasJson. The text has no values of variables and no optimizer; a forward function has no loss either.
mlir::OwningOpRef<mlir::ModuleOp> readStableHlo(llvm::StringRef text, const std::string &name, int64_t batch,
                                                const TrainingOptions &options, mlir::MLIRContext &context,
                                                DiagnosticLines &diagnostics);

} // namespace mtc

#endif
