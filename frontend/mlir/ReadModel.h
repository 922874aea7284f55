// SPDX-License-Identifier: Apache-2.0
//
// MLIR text to a module with one mt.model.
#ifndef FRONTEND_MLIR_READMODEL_H
#define FRONTEND_MLIR_READMODEL_H

#include "frontend/mlir/Diagnostics.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mtc {

// Reads and verifies text from any source. `context` should know the mt dialect and no other, so that nothing else
// parses. Null with lines in `diagnostics` on errors. `batch` is what limits take for `?`, and `length` takes the place
// of each {length} in the text; 0: there must be none.
mlir::OwningOpRef<mlir::ModuleOp> readModel(llvm::StringRef text, llvm::StringRef name, int64_t batch,
                                            mlir::MLIRContext &context, DiagnosticLines &diagnostics,
                                            int64_t length = 0);

} // namespace mtc

#endif
