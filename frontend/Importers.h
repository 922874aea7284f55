// SPDX-License-Identifier: Apache-2.0
//
// The formats that models come in: one row per importer. What follows them knows modules with one mt.model, and no
// format.
#ifndef FRONTEND_IMPORTERS_H
#define FRONTEND_IMPORTERS_H

#include "frontend/ExportArchive.h"
#include "frontend/NamedTensor.h"
#include "frontend/mlir/Diagnostics.h"
#include "frontend/training/TrainingOptions.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <string_view>

namespace mtc {

// A model in any format that there is an importer for.
struct ModelSource {
  std::string name;      // in messages
  std::string_view text; // the model or, of a file that its importer opens, how it begins
  std::string path;      // of such a file; empty: `text` is the model
};

// What an importer is given, and where it puts what is not the module.
struct ImportRequest {
  const ModelSource &source;
  int64_t batch; // what limits take for `?`
  const TrainingOptions &training;
  mlir::MLIRContext &context;
  DiagnosticLines &diagnostics;      // errors go there
  std::vector<NamedTensor> &weights; // values of the file's variables, and of its optimizer's
  bool isDouble;                     // the model is computed in f64
  ExportArchive *exported;           // what the trained model is written back as; null: nobody asks
};

// Whether a file that begins so is opened by its importer.
bool isOpenedByImporter(llvm::StringRef start);

// By the importer of the source's format. Null with errors in the request's `diagnostics`.
mlir::OwningOpRef<mlir::ModuleOp> importModule(const ImportRequest &request);

} // namespace mtc

#endif
