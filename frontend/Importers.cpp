// SPDX-License-Identifier: Apache-2.0
#include "frontend/Importers.h"
#include "frontend/mlir/ReadModel.h"

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

static OwningOpRef<ModuleOp> importMlir(const ImportRequest &request) {
  if (!request.training.inputShapes.empty()) {
    request.diagnostics.addError(
        request.source.name +
        ": error: expected a Keras model for --input-shape, found MLIR text, whose inputs have sizes");
    return {};
  }
  OwningOpRef<ModuleOp> module =
      readModel(request.source.text, request.source.name, request.batch, request.context, request.diagnostics);
  std::vector<std::string> frozen;
  if (module)
    for (auto model : module->getOps<mt::ModelOp>())
      if (failed(freezeVariables(model, request.training.frozen, frozen)))
        return {};
  return module;
}

static bool isAnything(llvm::StringRef) { return true; }

llvm::ArrayRef<Importer> importers() {
  static constexpr Importer table[] = {
      {/*opensFile=*/true, isKerasArchive, importKerasArchive},
      {false, isKerasJson, importKerasJson},
      {false, isAnything, importMlir},
  };
  return table;
}

const Importer &importerOf(llvm::StringRef text) {
  for (const Importer &importer : importers())
    if (!importer.opensFile && importer.recognizes(text))
      return importer;
  llvm_unreachable("the last importer takes every text");
}

static const Importer *openerOf(llvm::StringRef start) {
  for (const Importer &importer : importers())
    if (importer.opensFile && importer.recognizes(start))
      return &importer;
  return nullptr;
}

bool isOpenedByImporter(llvm::StringRef start) { return openerOf(start) != nullptr; }

OwningOpRef<ModuleOp> importModule(const ImportRequest &request) {
  llvm::StringRef text(request.source.text.data(), request.source.text.size());
  return (request.source.path.empty() ? importerOf(text) : *openerOf(text)).read(request);
}

} // namespace mtc
