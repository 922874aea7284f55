// SPDX-License-Identifier: Apache-2.0
//
// A Keras model, as a `.keras` archive or the JSON of `model.to_json()`, to a module with one mt.model.
#ifndef FRONTEND_KERAS_READKERAS_H
#define FRONTEND_KERAS_READKERAS_H

#include "frontend/ExportArchive.h"
#include "frontend/NamedTensor.h"
#include "frontend/mlir/Diagnostics.h"
#include "frontend/training/TrainingOptions.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace mtc {

// The formats told apart by a file's first bytes.
bool isKerasArchive(llvm::StringRef start); // a zip file
bool isKerasJson(llvm::StringRef start);    // an object

// Null with lines in `diagnostics` on errors. `batch` is what limits take for `?`. `weights` receives the values of the
// file's variables and of its optimizer's; none for JSON. `exported`, if not null, receives what the trained model is
// written back as.
mlir::OwningOpRef<mlir::ModuleOp> readKerasArchive(const std::string &path, int64_t batch,
                                                   const TrainingOptions &options, mlir::MLIRContext &context,
                                                   DiagnosticLines &diagnostics, std::vector<NamedTensor> &weights,
                                                   ExportArchive *exported);
mlir::OwningOpRef<mlir::ModuleOp> readKerasJson(llvm::StringRef text, const std::string &name, int64_t batch,
                                                const TrainingOptions &options, mlir::MLIRContext &context,
                                                DiagnosticLines &diagnostics, ExportArchive *exported);

} // namespace mtc

#endif
