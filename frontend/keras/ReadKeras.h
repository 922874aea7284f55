// SPDX-License-Identifier: Apache-2.0
//
// A Keras model, as a `.keras` archive or the JSON of `model.to_json()`, to a module with one mt.model.
#ifndef FRONTEND_KERAS_READKERAS_H
#define FRONTEND_KERAS_READKERAS_H

#include "frontend/ExportArchive.h"
#include "frontend/ChosenVariables.h"
#include "frontend/NamedTensor.h"
#include "frontend/mlir/Diagnostics.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <map>

namespace mtc {

// What a model that was not compiled lacks, and what replaces what it has. Empty: as the file says.
struct TrainingOptions {
  std::string loss;      // "mse", "sparse_categorical_crossentropy,from_logits=true": for every output
  std::string optimizer; // "adam", "sgd,learning_rate=0.1,momentum=0.9"
  std::string metrics;   // "accuracy", "accuracy+mae"; "none"
  bool dropUnsupportedMetrics = false;
  bool sampleWeights = false; // losses and weighted metrics have weights of samples, an input that may be absent
  FreezeOptions frozen;
  std::string noWeightDecay; // patterns as those of `frozen`
  std::vector<std::string> classNames; // of the labels; the file's own are those of its metadata
  std::map<std::string, std::vector<int64_t>> inputShapes; // by input; "": of the only one. For axes of any size
};

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
