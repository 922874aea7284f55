// SPDX-License-Identifier: Apache-2.0
//
// The stage `codegen` as a pass, which adds grids to the IR and stores machine code outside of it.
#include "compiler/Passes.h"
#include "compiler/codegen/Codegen.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/FileSystem.h"

namespace mtc {
#define GEN_PASS_DEF_PLANCODEGEN
#include "compiler/Passes.h.inc"
} // namespace mtc

using namespace mlir;
using namespace mtc;

namespace {
struct PlanCodegen : mtc::impl::PlanCodegenBase<PlanCodegen> {
  using PlanCodegenBase::PlanCodegenBase;
  PlanCodegen(const PlanCodegenOptions &options, std::vector<TargetCode> &result)
      : PlanCodegenBase(options), result(&result) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    CodegenOptions options = codegenOptions(module, {cpus.begin(), cpus.end()});
    options.gpus = {gpus.begin(), gpus.end()};
    options.keepGpuKernels = keepGpuKernels;
    if (failed(setGrids(module)))
      return signalPassFailure();
    FailureOr<std::vector<CodeTask>> tasks = prepareCode(module, options), forGpus = std::vector<CodeTask>();
    if (succeeded(tasks) && !options.gpus.empty())
      forGpus = prepareGpuCode(module, options);
    if (failed(tasks) || failed(forGpus))
      return signalPassFailure();
    llvm::move(*forGpus, std::back_inserter(*tasks));
    FailureOr<std::vector<TargetCode>> code = runTasks(module, *tasks);
    if (failed(code))
      return signalPassFailure();
    auto isPtx = [](const TargetCode &target) { return StringRef(target.name).ends_with(":ptx"); };
    auto isCpu = [](const TargetCode &target) { return target.device == "cpu"; };
    if (failed(write(*code, object, isCpu)) || failed(write(*code, ptx, isPtx)))
      return signalPassFailure();
    if (result)
      *result = std::move(*code);
  }

  // Writes the first code for which `wanted` holds to the file `path`; does nothing if `path` is empty.
  LogicalResult write(ArrayRef<TargetCode> codes, StringRef path, llvm::function_ref<bool(const TargetCode &)> wanted) {
    if (path.empty())
      return success();
    const TargetCode *found = llvm::find_if(codes, wanted);
    if (found == codes.end())
      return getOperation().emitError("expected code for ") << path << ", found no such target";
    std::error_code error;
    llvm::raw_fd_ostream stream(path, error);
    if (!error)
      stream.write(found->elf.data(), found->elf.size());
    if (error)
      return getOperation().emitError("cannot write ") << path << ": " << error.message();
    return success();
  }

  std::vector<TargetCode> *result = nullptr;
};
} // namespace

std::unique_ptr<Pass> mtc::createCodegenPass(ArrayRef<std::string> cpus, ArrayRef<std::string> gpus,
                                             std::vector<TargetCode> &result) {
  PlanCodegenOptions options;
  options.cpus = llvm::to_vector(cpus);
  options.gpus = llvm::to_vector(gpus);
  return std::make_unique<PlanCodegen>(options, result);
}
