// SPDX-License-Identifier: Apache-2.0
//
// Runs passes for lit tests: mt-opt model.mlir --mt-differentiate; or all passes of a stage: mt-opt model.mlir
// --stage-fuse.
#include "compiler/Passes.h"
#include "compiler/Pipeline.h"
#include "dialects/graph/GraphDialect.h"
#include "frontend/graph/GraphLayout.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

// Code generation runs lld, which resets the command-line options of the process, including mt-opt's. The pass pipeline
// of the second part of a split file comes from these options, so its text is saved first.
static LogicalResult keepPasses(MlirOptMainConfig &config) {
  MLIRContext context;
  PassManager passes(&context);
  if (failed(config.setupPassPipeline(passes)))
    return failure();
  std::string text;
  llvm::raw_string_ostream stream(text);
  passes.printAsTextualPipeline(stream);
  config.setPassPipelineSetupFn([text](PassManager &manager) -> LogicalResult {
    FailureOr<OpPassManager> parsed = parsePassPipeline(text);
    if (failed(parsed))
      return failure();
    static_cast<OpPassManager &>(manager) = std::move(*parsed);
    return success();
  });
  return success();
}

// Registers the stages before code generation as pipelines, with the options of a plan for CPUs.
static void registerStages() {
  static mtc::Compilation compilation;
  compilation.cpus = {"x86-64-v4", "x86-64-v3"};
  for (const mtc::Stage &stage : mtc::stages()) {
    if (StringRef(stage.name) == "codegen")
      break;
    PassPipelineRegistration<>(("stage-" + Twine(stage.name)).str(), stage.help,
                               [&stage](OpPassManager &passes) { stage.build(passes, compilation); });
  }
}

int main(int argc, char **argv) {
  DialectRegistry registry;
  registry.insert<mt::MtDialect, plan::PlanDialect, graph::GraphDialect, shard::ShardDialect, func::FuncDialect,
                  arith::ArithDialect, vector::VectorDialect, LLVM::LLVMDialect>();
  registerTransformsPasses();
  mtc::registerMTCompilerPasses();
  mtc::registerGraphLayout();
  registerStages();
  auto [input, output] = registerAndParseCLIOptions(argc, argv, "mt-opt: runs the passes of MTC\n", registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
  std::string problem;
  auto from = openInputFile(input, &problem);
  auto to = from ? openOutputFile(output, &problem) : nullptr;
  if (!to) {
    llvm::errs() << problem << "\n";
    return EXIT_FAILURE;
  }
  if ((!config.shouldRunReproducer() && failed(keepPasses(config))) ||
      failed(MlirOptMain(to->os(), std::move(from), registry, config)))
    return EXIT_FAILURE;
  to->keep();
  return EXIT_SUCCESS;
}
