// SPDX-License-Identifier: Apache-2.0
//
// Code generation for one target as a pass, for mt-opt; the road compiles for several at once (generateCode).
#include "compiler/Passes.h"
#include "compiler/codegen/Codegen.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
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

  void runOnOperation() override {
    ModuleOp module = getOperation();
    CodegenOptions options = codegenOptions(module, {cpu});
    if (failed(setGrids(module)))
      return signalPassFailure();
    FailureOr<std::vector<TargetCode>> code = generateCode(module, options);
    if (failed(code))
      return signalPassFailure();
    if (object.empty())
      return;
    std::error_code error;
    llvm::raw_fd_ostream stream(object, error);
    if (!error)
      stream.write(code->front().elf.data(), code->front().elf.size());
    if (error) {
      module.emitError("cannot write ") << object << ": " << error.message();
      signalPassFailure();
    }
  }
};
} // namespace
