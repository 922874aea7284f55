// SPDX-License-Identifier: Apache-2.0
#include "frontend/stablehlo/ReadStableHlo.h"

#include "frontend/mlir/Limits.h"
#include "frontend/mlir/Prescan.h"
#include "frontend/stablehlo/Importer.h"
#include "frontend/stablehlo/Text.h"
#include "frontend/training/Training.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace mtc {

bool isStableHlo(llvm::StringRef text) {
  return (text.contains("\"stablehlo.") || text.contains(" stablehlo.")) && !beginsLine(text, "mt.model");
}

// Ops of dialects that are not there, while the file is read.
static OwningOpRef<ModuleOp> parseFile(llvm::StringRef text, const std::string &name, int64_t batch,
                                       MLIRContext &context) {
  bool before = context.allowsUnregisteredDialects();
  context.allowUnregisteredDialects(true);
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, name), llvm::SMLoc());
  OwningOpRef<ModuleOp> file = parseSourceFile<ModuleOp>(sources, ParserConfig(&context, /*verifyAfterParse=*/false));
  if (!file || failed(checkLimits(*file, batch)) || failed(verify(*file)))
    file = {};
  context.allowUnregisteredDialects(before);
  return file;
}

// The loss that the file has, and the optimizer of the options.
static LogicalResult makeLoss(OpBuilder &builder, ArrayRef<stablehlo::MeanTerm> terms, const TrainingOptions &options) {
  Location location = NameLoc::get(builder.getStringAttr("loss"));
  if (!options.loss.empty() || !options.metrics.empty() || options.sampleWeights)
    return emitError(location) << "expected no --loss, --metrics and --sample-weights for a function that computes its "
                                  "loss, found one";
  if (options.optimizer.empty())
    return emitError(location) << "expected an optimizer, found none: give one, as --optimizer adam";
  mt::Expr sum = mt::Expr(builder, location, terms[0].values) * terms[0].scale;
  for (const stablehlo::MeanTerm &term : terms.drop_front())
    sum = sum + mt::Expr(builder, location, term.values) * term.scale;
  mt::LossOp::create(builder, location, "loss", sum.value(), mlir::Value(), mt::Divisor::samples, llvm::APFloat(1.0F));
  Json optimizer;
  if (std::string problem = training::parseObject(options.optimizer, optimizer); !problem.empty())
    return emitError(location) << problem;
  return training::buildOptimizer(builder, NameLoc::get(builder.getStringAttr("optimizer")), optimizer);
}

static LogicalResult makeStep(OpBuilder &builder, ModuleOp file, Location location, const TrainingOptions &options) {
  if (!options.loss.empty() || !options.metrics.empty() || !options.optimizer.empty() || options.sampleWeights ||
      options.frozen.any())
    return emitError(location) << "expected no --loss, --metrics, --optimizer, --sample-weights, --freeze and "
                                  "--trainable for a step, which has its losses and updates, found one";
  stablehlo::StepArguments arguments;
  if (std::string problem = stablehlo::readStepArguments(options, arguments); !problem.empty())
    return emitError(location) << problem;
  return stablehlo::Importer(builder, file).runStep(arguments);
}

OwningOpRef<ModuleOp> readStableHlo(llvm::StringRef text, const std::string &name, int64_t batch,
                                    const TrainingOptions &options, MLIRContext &context,
                                    DiagnosticLines &diagnostics) {
  if (std::string problem = prescan(text, name); !problem.empty()) {
    diagnostics.addError(problem);
    return {};
  }
  if (beginsLine(text, "func.func"))
    stablehlo::loadTextDialects(context);
  OwningOpRef<ModuleOp> file = parseFile(text, name, batch, context);
  if (!file)
    return {};
  context.loadDialect<mt::MtDialect>();
  OpBuilder builder(&context);
  std::string title = file->getName().value_or("model").str();
  Location location = NameLoc::get(builder.getStringAttr(title));
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  builder.setInsertionPointToStart(module->getBody());
  auto model = mt::ModelOp::create(builder, location, title);
  builder.setInsertionPointToStart(&model.getBody().emplaceBlock());
  if (options.step) {
    if (failed(makeStep(builder, *file, location, options)) || failed(checkLimits(*module, batch)) ||
        failed(verify(*module)))
      return {};
    return module;
  }
  std::vector<training::Output> outputs;
  std::vector<stablehlo::MeanTerm> loss;
  if (failed(stablehlo::Importer(builder, *file).run(outputs, loss)))
    return {};
  if (failed(loss.empty() ? training::Training(builder, nullptr, options).build(outputs)
                          : makeLoss(builder, loss, options)))
    return {};
  // Sizes are bounded before any verifier computes with them.
  if (failed(checkLimits(*module, batch)) || failed(verify(*module)))
    return {};
  std::vector<std::string> frozen;
  freezeUnused(model, frozen);
  return failed(freezeVariables(model, options.frozen, frozen)) ? OwningOpRef<ModuleOp>() : std::move(module);
}

} // namespace mtc
