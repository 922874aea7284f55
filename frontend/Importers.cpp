// SPDX-License-Identifier: Apache-2.0
#include "frontend/Importers.h"
#include "frontend/keras/ReadKeras.h"
#include "frontend/mlir/ReadModel.h"
#include "frontend/onnx/ReadOnnx.h"
#include "frontend/stablehlo/ReadStableHlo.h"

using namespace mlir;

namespace mtc {

static OwningOpRef<ModuleOp> importKerasArchive(const ImportRequest &request) {
  return readKerasArchive(request.source.path, request.batch, request.training, request.context, request.diagnostics,
                          request.weights, request.exported);
}

static OwningOpRef<ModuleOp> importKerasJson(const ImportRequest &request) {
  return readKerasJson(request.source.text, request.source.name, request.batch, request.training, request.context,
                       request.diagnostics, request.exported);
}

static OwningOpRef<ModuleOp> importOnnx(const ImportRequest &request) {
  return readOnnx(request.source.path, request.batch, request.training, request.context, request.diagnostics,
                  request.weights);
}

static OwningOpRef<ModuleOp> importStableHlo(const ImportRequest &request) {
  return readStableHlo(request.source.text, request.source.name, request.batch, request.training, request.context,
                       request.diagnostics);
}

// The first option that says of a model what MLIR text says itself; null: none.
static const char *optionOfModel(const TrainingOptions &training) {
  return !training.loss.empty()            ? "--loss"
         : !training.optimizer.empty()     ? "--optimizer"
         : !training.metrics.empty()       ? "--metrics"
         : training.dropUnsupportedMetrics ? "--drop-unsupported-metrics"
         : training.sampleWeights          ? "--sample-weights"
         : !training.inputShapes.empty()   ? "--input-shape"
                                           : nullptr;
}

static OwningOpRef<ModuleOp> importMlir(const ImportRequest &request) {
  if (const char *option = optionOfModel(request.training)) {
    request.diagnostics.addError(request.source.name + ": error: expected a model of another format for " + option +
                                 ", found MLIR text, which says it itself");
    return {};
  }
  OwningOpRef<ModuleOp> module = readModel(request.source.text, request.source.name, request.batch, request.context,
                                           request.diagnostics, request.training.length, request.isDouble);
  std::vector<std::string> frozen;
  if (module)
    for (auto model : module->getOps<mt::ModelOp>())
      if (failed(freezeVariables(model, request.training.frozen, frozen)))
        return {};
  return module;
}

static bool isAnything(llvm::StringRef) { return true; }

namespace {
struct Importer {
  bool opensFile;                           // it reads the file at its path: there is no text of it
  bool (*recognizes)(llvm::StringRef text); // by how a file begins
  OwningOpRef<ModuleOp> (*read)(const ImportRequest &request);
};
} // namespace

// In the order in which they are asked. The last, of MLIR text, takes what no other one does, and says what is wrong.
static constexpr Importer importers[] = {
    {/*opensFile=*/true, isKerasArchive, importKerasArchive},
    {/*opensFile=*/true, isOnnx, importOnnx},
    {false, isKerasJson, importKerasJson},
    {false, isStableHlo, importStableHlo},
    {false, isAnything, importMlir},
};

// Null: none. An importer that opens files is not asked about a text that has no file.
static const Importer *importerOf(llvm::StringRef text, bool opensFile) {
  const Importer *importer = llvm::find_if(
      importers, [&](const Importer &each) { return each.opensFile == opensFile && each.recognizes(text); });
  return importer == std::end(importers) ? nullptr : importer;
}

bool isOpenedByImporter(llvm::StringRef start) { return importerOf(start, /*opensFile=*/true) != nullptr; }

OwningOpRef<ModuleOp> importModule(const ImportRequest &request) {
  llvm::StringRef text(request.source.text.data(), request.source.text.size());
  const Importer *importer = importerOf(text, /*opensFile=*/!request.source.path.empty());
  const TrainingOptions &training = request.training;
  bool saysArguments = !training.state.empty() || !training.split.empty();
  if ((training.step || saysArguments) && (importer->read != importStableHlo || !training.step)) {
    const std::string name = request.source.path.empty() ? request.source.name : request.source.path;
    request.diagnostics.addError(name + ": error: expected " +
                                 (training.step ? "a file of StableHLO for --step, found one of another format"
                                                : "--step with --state and --split, found none"));
    return {};
  }
  if (request.isDouble && importer->read != importMlir) {
    const std::string name = request.source.path.empty() ? request.source.name : request.source.path;
    request.diagnostics.addError(name +
                                 ": error: expected MLIR text, or a trace of JAX or PyTorch, for --precision f64, "
                                 "found a file whose importer computes in float32: choose another precision, or "
                                 "write the model for mtc.jax or mtc.torch");
    return {};
  }
  auto module = importer->read(request);
  if (module && request.training.freezeBatchNorm)
    module->walk([](mt::BatchNormalizationOp norm) { norm.setFrozen(true); });
  if (module)
    for (auto model : module->getOps<mt::ModelOp>())
      if (failed(setRates(model, request.training.rates)))
        return {};
  return module;
}

} // namespace mtc
