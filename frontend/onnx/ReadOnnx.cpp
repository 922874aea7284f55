// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/ReadOnnx.h"

#include "frontend/mlir/Limits.h"
#include "frontend/onnx/Importer.h"
#include "frontend/training/Training.h"

#include "mlir/IR/Verifier.h"

#include <set>

using namespace mlir;

namespace mtc {

bool isOnnx(llvm::StringRef start) { return onnx::isModel({start.data(), start.size()}); }

// Values of variables that are left.
static void keepUsed(mt::ModelOp model, std::vector<NamedTensor> &weights) {
  std::set<std::string> names;
  for (auto variable : model.getOps<mt::VariableOp>())
    names.insert(variable.getName().str());
  llvm::erase_if(weights, [&](const NamedTensor &tensor) { return !names.count(tensor.name); });
}

OwningOpRef<ModuleOp> readOnnx(const std::string &path, int64_t batch, const TrainingOptions &options,
                               MLIRContext &context, DiagnosticLines &diagnostics, std::vector<NamedTensor> &weights) {
  context.loadDialect<mt::MtDialect>();
  onnx::Model file;
  if (std::string problem = onnx::readModel(path, file); !problem.empty()) {
    diagnostics.addError(path + ": error: " + problem);
    return {};
  }
  OpBuilder builder(&context);
  std::string name = file.name.empty() ? "model" : file.name;
  Location location = NameLoc::get(builder.getStringAttr(name));
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  builder.setInsertionPointToStart(module->getBody());
  auto model = mt::ModelOp::create(builder, location, name);
  builder.setInsertionPointToStart(&model.getBody().emplaceBlock());
  std::vector<training::Output> outputs;
  training::Training training(builder, nullptr, options);
  if (failed(onnx::Importer(builder, file, options.inputShapes, options.length, options.freezeBatchNorm)
                 .run(outputs, weights)) ||
      failed(training.build(outputs)))
    return {};
  // Sizes are bounded before any verifier computes with them.
  if (failed(checkLimits(*module, batch)) || failed(verify(*module)))
    return {};
  std::vector<std::string> frozen;
  freezeUnused(model, frozen);
  if (failed(freezeVariables(model, options.frozen, frozen)))
    return {};
  keepUsed(model, weights);
  return module;
}

} // namespace mtc
