// SPDX-License-Identifier: Apache-2.0
//
// GPU kernels as a pass, for mt-opt; the road makes code of them at once (generateGpuCode).
#include "compiler/Passes.h"
#include "compiler/codegen/Kernel.h"
#include "compiler/codegen/gpu/Gpu.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "llvm/Support/FileSystem.h"

namespace mtc {
#define GEN_PASS_DEF_PLANGPUKERNELS
#include "compiler/Passes.h.inc"
} // namespace mtc

using namespace mlir;
using namespace mtc;

namespace {
struct PlanGpuKernels : mtc::impl::PlanGpuKernelsBase<PlanGpuKernels> {
  using PlanGpuKernelsBase::PlanGpuKernelsBase;

  LogicalResult initialize(MLIRContext *context) override {
    registerBuiltinDialectTranslation(*context);
    registerLLVMDialectTranslation(*context);
    registerNVVMDialectTranslation(*context);
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    CodegenOptions options = codegenOptions(module, {});
    OwningOpRef<ModuleOp> normal(module.clone());
    for (auto op : normal->getOps<plan::KernelOp>())
      normalise(op);
    auto kernels = emitGpuKernels(*normal, options);
    if (failed(kernels))
      return signalPassFailure();
    for (auto [op, with] : llvm::zip_equal(module.getOps<plan::KernelOp>(), normal->getOps<plan::KernelOp>()))
      op.setGpuGridAttr(with.getGpuGridAttr());
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(), UnitAttr::get(&getContext()));
    module.push_back((*kernels)->getBody()->front().clone());
    if (!ptx.empty() && failed(writePtx(**kernels)))
      signalPassFailure();
  }

  LogicalResult writePtx(ModuleOp kernels) {
    OwningOpRef<ModuleOp> lowered = lowerToNvvm(kernels);
    auto text = compilePtx(*lowered, gpu);
    if (!text)
      return kernels.emitError(llvm::toString(text.takeError()));
    std::error_code error;
    llvm::raw_fd_ostream stream(ptx, error);
    if (error)
      return kernels.emitError("cannot write ") << ptx << ": " << error.message();
    stream << *text;
    return success();
  }
};
} // namespace
