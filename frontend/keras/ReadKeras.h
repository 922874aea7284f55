// SPDX-License-Identifier: Apache-2.0
//
// Reads a Keras model, a `.keras` archive or the JSON of `model.to_json()`, to a module with one mt.model.
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

// Formats by the first bytes of a file.
bool isKerasArchive(llvm::StringRef start); // a zip file
bool isKerasJson(llvm::StringRef start);    // a JSON object

// Return null, with errors in `diagnostics`, if the file is invalid. `batch` is the size of `?` for limits. `weights`
// receives the values of the variables and of the optimizer's variables in the file; JSON has none. `exported`, if not
// null, receives the format for exporting the trained model.
mlir::OwningOpRef<mlir::ModuleOp> readKerasArchive(const std::string &path, int64_t batch,
                                                   const TrainingOptions &options, mlir::MLIRContext &context,
                                                   DiagnosticLines &diagnostics, std::vector<NamedTensor> &weights,
                                                   ExportArchive *exported);
mlir::OwningOpRef<mlir::ModuleOp> readKerasJson(llvm::StringRef text, const std::string &name, int64_t batch,
                                                const TrainingOptions &options, mlir::MLIRContext &context,
                                                DiagnosticLines &diagnostics, ExportArchive *exported);

} // namespace mtc

#endif
