// SPDX-License-Identifier: Apache-2.0
//
// Reads MLIR text to a module with one mt.model.
#ifndef FRONTEND_MLIR_READMODEL_H
#define FRONTEND_MLIR_READMODEL_H

#include "frontend/mlir/Diagnostics.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mtc {

// Parses and verifies text. `context` should have only the dialects mt and graph, so that other dialects do not parse.
// Returns null, with errors in `diagnostics`, if the text is invalid. `batch` is the size of `?` for limits. `length`
// replaces each {length} in the text; 0: the text must not contain it. `isDouble`: the model is computed in f64.
mlir::OwningOpRef<mlir::ModuleOp> readModel(llvm::StringRef text, llvm::StringRef name, int64_t batch,
                                            mlir::MLIRContext &context, DiagnosticLines &diagnostics,
                                            int64_t length = 0, bool isDouble = false);

} // namespace mtc

#endif
