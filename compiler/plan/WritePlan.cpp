// SPDX-License-Identifier: Apache-2.0
//
// The last two stages as passes: they fill the compilation beside the IR.
#include "compiler/codegen/Codegen.h"
#include "compiler/plan/Serialize.h"
#include "dialects/mt/MtDialect.h"

#include "mlir/Pass/Pass.h"

namespace mtc {

using namespace mlir;

namespace {

struct GenerateCode : PassWrapper<GenerateCode, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(GenerateCode)
  explicit GenerateCode(Compilation &compilation) : compilation(&compilation) {}
  StringRef getName() const override { return "codegen"; }

  void runOnOperation() override {
    CodegenOptions options = codegenOptions(getOperation(), compilation->cpuTargets());
    options.gpus = compilation->gpus;
    if (failed(setGrids(getOperation())))
      return signalPassFailure();
    FailureOr<std::vector<CodeTask>> tasks = prepareCode(getOperation(), options), forGpus = std::vector<CodeTask>();
    if (succeeded(tasks) && !options.gpus.empty())
      forGpus = prepareGpuCode(getOperation(), options);
    if (failed(tasks) || failed(forGpus))
      return signalPassFailure();
    llvm::move(*forGpus, std::back_inserter(*tasks));
    FailureOr<std::vector<TargetCode>> code = runTasks(getOperation(), *tasks);
    if (failed(code))
      return signalPassFailure();
    compilation->code = std::move(*code);
  }

  Compilation *compilation;
};

struct WritePlan : PassWrapper<WritePlan, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(WritePlan)
  explicit WritePlan(Compilation &compilation) : compilation(&compilation) {}
  StringRef getName() const override { return "plan"; }

  void runOnOperation() override {
    FailureOr<std::vector<uint8_t>> plan = serializePlan(getOperation(), *compilation);
    if (failed(plan))
      return signalPassFailure();
    compilation->plan = std::move(*plan);
  }

  Compilation *compilation;
};

} // namespace

void buildCodegen(OpPassManager &passes, Compilation &compilation) {
  passes.addPass(std::make_unique<GenerateCode>(compilation));
}

void buildPlan(OpPassManager &passes, Compilation &compilation) {
  passes.addPass(std::make_unique<WritePlan>(compilation));
}

} // namespace mtc
