// SPDX-License-Identifier: Apache-2.0
//
// An ONNX model to a module with one mt.model.
#ifndef FRONTEND_ONNX_READONNX_H
#define FRONTEND_ONNX_READONNX_H

#include "frontend/NamedTensor.h"
#include "frontend/mlir/Diagnostics.h"
#include "frontend/training/TrainingOptions.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mtc {

// Told by a file's first bytes.
bool isOnnx(llvm::StringRef start);

// As readKerasArchive. An ONNX file has no loss and no optimizer: they are those of `options`.
mlir::OwningOpRef<mlir::ModuleOp> readOnnx(const std::string &path, int64_t batch, const TrainingOptions &options,
                                           mlir::MLIRContext &context, DiagnosticLines &diagnostics,
                                           std::vector<NamedTensor> &weights);

} // namespace mtc

#endif
