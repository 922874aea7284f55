// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/ReadKeras.h"

#include "dialects/mt/Compilation.h"
#include "frontend/ClassNames.h"
#include "frontend/keras/Export.h"
#include "frontend/keras/Importer.h"
#include "frontend/keras/Precision.h"
#include "frontend/mlir/Limits.h"
#include "frontend/training/Training.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace mtc {

using namespace keras;

bool isKerasArchive(llvm::StringRef start) {
  return start.starts_with("PK\x03\x04") || start.starts_with("PK\x05\x06");
}
bool isKerasJson(llvm::StringRef start) { return start.ltrim().starts_with("{") && !start.ltrim().starts_with("{-#"); }

// Class names in the comment of an archive that MTC wrote, or next to Keras' own metadata; empty if the text has none.
static std::vector<std::string> classNamesOf(const std::string &text) {
  Json json;
  const Json *list = parseJson(text, json).empty() ? member(json, "class_names") : nullptr;
  std::vector<std::string> names;
  if (!list || !list->is_array() || !llvm::all_of(*list, [](const Json &name) { return name.is_string(); }))
    return {};
  for (const Json &name : *list)
    names.push_back(name.get<std::string>());
  return checkClassNames(names).empty() ? names : std::vector<std::string>();
}

// A file has only the configuration of a model, a trace has all of its computations, so more models can be traced than
// read.
static void adviseTrace(const std::string &name, DiagnosticLines &diagnostics) {
  if (!llvm::StringRef(diagnostics.errors()).contains("docs/keras-traces.md"))
    diagnostics.addError(name + ": note: a trace supports more layers, options, losses and metrics than a file: to "
                                "trace the model, call mtc.fit or mtc.compile(model, by=\"trace\") in the program that "
                                "builds it (docs/keras-traces.md)");
}

static mlir::OwningOpRef<ModuleOp> importModel(llvm::StringRef text, const std::string &name, int64_t batch,
                                               const TrainingOptions &options, MLIRContext &context,
                                               DiagnosticLines &diagnostics, Archive *archive,
                                               std::vector<NamedTensor> &weights, ExportArchive *exported) {
  auto fail = [&](const std::string &message) {
    diagnostics.addError(name + ": error: " + message);
    return OwningOpRef<ModuleOp>();
  };
  context.loadDialect<mt::MtDialect>();
  Json json;
  std::string what = archive ? "config.json: " : "";
  if (std::string problem = parseJson(text, json); !problem.empty())
    return fail(what + problem);
  Graph graph;
  if (std::string problem = readGraph(json, graph); !problem.empty())
    return fail(what + problem);

  OpBuilder builder(&context);
  Location location = NameLoc::get(builder.getStringAttr(graph.name.empty() ? "model" : graph.name));
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  builder.setInsertionPointToStart(module->getBody());
  auto model = mt::ModelOp::create(builder, location, graph.name.empty() ? "model" : graph.name);
  builder.setInsertionPointToStart(&model.getBody().emplaceBlock());
  std::vector<Output> outputs;
  const Json *compile = member(json, "compile_config");
  training::Training training(builder, compile, options);
  if (failed(Importer(builder, graph, archive != nullptr, options.inputShapes, options.length).run(outputs)) ||
      failed(training.build(outputs))) {
    adviseTrace(name, diagnostics);
    return {};
  }
  if (failed(settlePrecision(*module)))
    return {};
  // Sizes are checked before any verifier computes with them.
  if (failed(checkLimits(*module, batch)) || failed(verify(*module)))
    return {};
  FileVariables variables = listVariables(graph, model);
  std::vector<std::string> frozen;
  freezeUnused(model, frozen);
  if (failed(freezeVariables(model, options.frozen, frozen)))
    return {};
  variables.dropSlots(frozen);
  // Keras wraps the optimizer of a float16 model in another one with other variables, so the optimizer starts again.
  bool keeps = training.keepsOptimizer() && mt::Compilation(*module).getPrecision() != "f16";
  if (archive && failed(matchWeights(*archive, variables, location, keeps, weights)))
    return {};
  std::vector<std::string> names = options.classNames;
  if (names.empty() && archive)
    names = classNamesOf(archive->comment);
  if (names.empty() && archive)
    names = classNamesOf(archive->metadata);
  if (!names.empty() && (!options.classNames.empty() || fitsClasses(model, names.size())))
    setStrings(*module, classNamesAttribute, names);
  // Keras 3 cannot read the older serialization format, whose objects have no modules.
  if (exported && json.contains("module"))
    if (std::string problem = makeExport(text.str(), json, options, archive, variables, names, *exported);
        !problem.empty())
      return fail(problem);
  return module;
}

OwningOpRef<ModuleOp> readKerasArchive(const std::string &path, int64_t batch, const TrainingOptions &options,
                                       MLIRContext &context, DiagnosticLines &diagnostics,
                                       std::vector<NamedTensor> &weights, ExportArchive *exported) {
  Archive archive;
  if (std::string problem = readArchive(path, archive); !problem.empty()) {
    diagnostics.addError(path + ": error: " + problem);
    return {};
  }
  return importModel(archive.config, path, batch, options, context, diagnostics, &archive, weights, exported);
}

OwningOpRef<ModuleOp> readKerasJson(llvm::StringRef text, const std::string &name, int64_t batch,
                                    const TrainingOptions &options, MLIRContext &context, DiagnosticLines &diagnostics,
                                    ExportArchive *exported) {
  std::vector<NamedTensor> none;
  return importModel(text, name, batch, options, context, diagnostics, nullptr, none, exported);
}

} // namespace mtc
