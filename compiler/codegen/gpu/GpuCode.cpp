// SPDX-License-Identifier: Apache-2.0
//
// The plan's GPU targets.
#include "compiler/codegen/common/Kernel.h"
#include "compiler/codegen/common/Object.h"
#include "compiler/codegen/gpu/Block.h"
#include "compiler/codegen/gpu/Gpu.h"
#include "dialects/mt/Compilation.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "runtime/abi/kernel_symbol.h"
#include <memory>

using namespace mlir;
using namespace mtc;

using Codes = std::vector<TargetCode>;
using Kernels = std::shared_ptr<OwningOpRef<ModuleOp>>;

// As plans have it: "cuda:sm_90".
static std::string targetName(StringRef code) { return (gpuDevice + ":" + code).str(); }

static bool hasTensorCores(StringRef architecture) {
  return llvm::any_of(mtrun::gpuArchitectures, [&](const mtrun::GpuArchitecture &known) {
    return architecture == StringRef(known.name) && known.hasTensorCores();
  });
}

static llvm::Expected<Codes> simulate(const OwningOpRef<ModuleOp> &kernels) {
  auto target = findTarget("x86-64-v3");
  if (!target)
    return target.takeError();
  auto object = compileObjects(kernels, *target, /*maxStack=*/UINT64_MAX);
  if (!object)
    return object.takeError();
  auto elf = linkShared(*object);
  if (!elf)
    return elf.takeError();
  return Codes{TargetCode{targetName(simulatedName), {simulatedName.str()}, std::move(*elf), gpuDevice.str(), {}, {}}};
}

// A cubin for each architecture if there is an assembler, then PTX if it is asked for.
static llvm::Expected<Codes> makeCode(ModuleOp kernels, const std::string &ptxas, ArrayRef<std::string> architectures,
                                      ArrayRef<std::string> names, bool text) {
  Codes codes;
  auto ptx = compilePtx(kernels, architectures.front());
  if (!ptx)
    return ptx.takeError();
  if (!ptxas.empty()) {
    auto cubins = assemble(ptxas, *ptx, architectures, names);
    if (!cubins)
      return cubins.takeError();
    for (auto [architecture, cubin] : llvm::zip_equal(architectures, *cubins))
      codes.push_back(
          {targetName(architecture), {architecture}, std::move(cubin.bytes), gpuDevice.str(), std::move(cubin.usage)});
  }
  std::string lowest = "compute_" + architectures.front().substr(3);
  if (text)
    codes.push_back({targetName("ptx"), {lowest}, {ptx->begin(), ptx->end()}, gpuDevice.str(), {}});
  return codes;
}

FailureOr<std::vector<CodeTask>> mtc::prepareGpuCode(ModuleOp module, const CodegenOptions &options) {
  MLIRContext *context = module.getContext();
  context->loadDialect<arith::ArithDialect, scf::SCFDialect, cf::ControlFlowDialect, LLVM::LLVMDialect, gpu::GPUDialect,
                       NVVM::NVVMDialect>();
  registerBuiltinDialectTranslation(*context);
  registerLLVMDialectTranslation(*context);
  registerNVVMDialectTranslation(*context);
  NormalModule normal = normalised(module, gpuLineForm);
  auto kernels = emitGpuKernels(normal, options);
  if (failed(kernels))
    return failure();
  std::vector<std::string> names, architectures;
  for (auto [op, with] : llvm::zip_equal(module.getOps<plan::KernelOp>(), normal.module->getOps<plan::KernelOp>())) {
    op.setGpuGridAttr(with.getGpuGridAttr());
    names.push_back(mtrun::kernelSymbol(op.getSymName()));
  }
  names.emplace_back(mtrun::sumKernelName);
  if (options.keepGpuKernels) {
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(), UnitAttr::get(context));
    module.push_back((*kernels)->getBody()->front().clone());
  }
  // Lowest first, each once.
  for (StringRef architecture : gpuArchitectures())
    if (llvm::is_contained(options.gpus, architecture))
      architectures.push_back(architecture.str());
  std::vector<CodeTask> tasks;
  if (!architectures.empty()) {
    std::string ptxas = findPtxas();
    if (ptxas.empty())
      emitRemark((*kernels)->getLoc())
          << "PTX only for GPUs: expected ptxas on PATH, in $CUDA_HOME/bin or in /usr/local/cuda/bin, found none";
    // Without tensor cores there is other code for products of a lower precision.
    auto newer = llvm::find_if(architectures, hasTensorCores);
    if (mt::Compilation(module).getPrecision() == "f32")
      newer = architectures.begin();
    std::vector<std::string> older(architectures.begin(), newer);
    architectures.erase(architectures.begin(), newer);
    auto add = [&](ModuleOp of, const std::vector<std::string> &some, bool text) {
      Kernels lowered = std::make_shared<OwningOpRef<ModuleOp>>(lowerToNvvm(of));
      tasks.push_back([=] { return makeCode(**lowered, ptxas, some, names, text); });
    };
    if (!older.empty()) {
      auto without = emitGpuKernels(normal, options, /*tensor=*/false);
      if (failed(without))
        return failure();
      add(**without, older, /*text=*/architectures.empty());
    }
    if (!architectures.empty())
      add(**kernels, architectures, /*text=*/true);
  }
  if (llvm::is_contained(options.gpus, simulatedName)) {
    Kernels lowered = std::make_shared<OwningOpRef<ModuleOp>>(lowerToSimulated(**kernels));
    tasks.push_back([=] { return simulate(*lowered); });
  }
  return tasks;
}

FailureOr<std::vector<TargetCode>> mtc::generateGpuCode(ModuleOp module, const CodegenOptions &options) {
  auto tasks = prepareGpuCode(module, options);
  if (failed(tasks))
    return failure();
  return runTasks(module, *tasks);
}
