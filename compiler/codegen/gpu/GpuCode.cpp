// SPDX-License-Identifier: Apache-2.0
//
// GPU targets of a plan.
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
#include <future>
#include <map>
#include <memory>
#include <mutex>

using namespace mlir;
using namespace mtc;

using Codes = std::vector<TargetCode>;
using Kernels = std::shared_ptr<KernelModules>;

// Name of a target in plans: "cuda:sm_90".
static std::string targetName(StringRef code) { return (gpuDevice + ":" + code).str(); }

// Unit that computes products on an architecture. wgmma takes 16-bit operands.
static MatrixUnit unitOf(StringRef architecture, StringRef precision) {
  const mtrun::GpuArchitecture *found =
      llvm::find_if(mtrun::gpuArchitectures, [&](const auto &known) { return architecture == StringRef(known.name); });
  if (found == std::end(mtrun::gpuArchitectures) || !found->hasTensorCores())
    return MatrixUnit::fma;
  return found->hasWarpgroups() && precision != "tf32" ? MatrixUnit::wgmma : MatrixUnit::mma;
}

static llvm::Expected<Codes> simulate(KernelModules &kernels, llvm::ThreadPoolInterface &pool) {
  auto target = findTarget("x86-64-v3");
  if (!target)
    return target.takeError();
  ObjectCompiler compiler(*target, pool);
  for (OwningOpRef<ModuleOp> &part : kernels)
    compiler.add(std::move(part));
  auto elf = compiler.link(/*maxStack=*/UINT64_MAX);
  if (!elf)
    return elf.takeError();
  return Codes{TargetCode{targetName(simulatedName), {simulatedName.str()}, std::move(*elf), gpuDevice.str(), {}, {}}};
}

namespace {
// Targets whose code is generated from the same kernels.
struct Group {
  MatrixUnit unit;
  std::vector<std::string> cubins; // architectures, lowest first
  std::string text;                // architecture of the PTX; empty: the plan has no PTX of this group
};
} // namespace

// Dynamic workgroup memory of each kernel, including the sum kernels at the end: all of its workgroup memory if it is
// more than every GPU has statically, else 0. Only kernels with wgmma have so much.
static std::vector<int64_t> memoryOfLaunches(ModuleOp normal, MatrixUnit unit, size_t kernels) {
  std::vector<int64_t> bytes(kernels, 0);
  if (unit == MatrixUnit::wgmma)
    for (auto [i, op] : llvm::enumerate(normal.getOps<plan::KernelOp>()))
      if (int64_t shared = op.getGpuGridAttr().getSharedBytes(); shared > maxSharedBytes)
        bytes[i] = shared;
  return bytes;
}

namespace {
// The kernels whose code does not depend on the unit. Groups of one architecture, such as cubins with wgmma and PTX
// without, have the text in common.
class CommonKernels {
public:
  explicit CommonKernels(KernelModules parts) : parts(std::move(parts)) {}
  size_t count() const { return parts.size(); }
  llvm::Expected<std::string> text(const std::string &architecture, llvm::ThreadPoolInterface &pool) {
    std::lock_guard lock(mutex);
    std::string &text = texts[architecture];
    if (!text.empty())
      return text;
    auto compiled = compilePtx(parts, 0, architecture, pool);
    if (compiled)
      text = *compiled;
    return compiled;
  }

private:
  KernelModules parts;
  std::mutex mutex;
  std::map<std::string, std::string> texts; // by architecture
};
} // namespace

// Generates a cubin for each architecture, then PTX.
static llvm::Expected<Codes> makeCode(CommonKernels &common, const KernelModules &kernels, const std::string &ptxas,
                                      const Group &group, ArrayRef<std::string> names, ArrayRef<int64_t> memory,
                                      llvm::ThreadPoolInterface &pool) {
  Codes codes;
  // Code with wgmma runs on no other architecture, which the suffix tells the assembler.
  std::string suffix = group.unit == MatrixUnit::wgmma ? "a" : "";
  std::string architecture = group.cubins.empty() ? group.text : group.cubins.front();
  auto others = std::async(std::launch::async, [&] { return common.text(architecture, pool); });
  auto ptx = compilePtx(kernels, common.count(), architecture + suffix, pool);
  auto more = others.get();
  if (!ptx || !more)
    return llvm::joinErrors(ptx ? llvm::Error::success() : ptx.takeError(),
                            more ? llvm::Error::success() : more.takeError());
  joinPtx(*ptx, *more);
  auto cubins = assemble(ptxas, *ptx, group.cubins, suffix, names);
  if (!cubins)
    return cubins.takeError();
  for (auto [architecture, cubin] : llvm::zip_equal(group.cubins, *cubins)) {
    for (auto [usage, bytes] : llvm::zip_equal(cubin.usage, memory))
      usage.dynamicSharedBytes = bytes;
    codes.push_back(
        {targetName(architecture), {architecture}, std::move(cubin.bytes), gpuDevice.str(), std::move(cubin.usage)});
  }
  if (!group.text.empty())
    codes.push_back(
        {targetName("ptx"), {"compute_" + group.text.substr(3)}, {ptx->begin(), ptx->end()}, gpuDevice.str(), {}});
  return codes;
}

// Groups of the architectures, lowest first. The PTX is for the lowest architecture that has tensor cores, if there is
// one, and uses features that all newer ones have.
static SmallVector<Group> groupsOf(ArrayRef<std::string> architectures, StringRef precision, bool assembles) {
  SmallVector<Group> groups{{MatrixUnit::fma, {}, ""}, {MatrixUnit::wgmma, {}, ""}, {MatrixUnit::mma, {}, ""}};
  auto groupOf = [&](MatrixUnit unit) -> Group & {
    return *llvm::find_if(groups, [&](const Group &group) { return group.unit == unit; });
  };
  for (const std::string &architecture : architectures) {
    MatrixUnit unit = precision == "f32" ? MatrixUnit::fma : unitOf(architecture, precision);
    if (assembles)
      groupOf(unit).cubins.push_back(architecture);
    Group &newer = groupOf(unit == MatrixUnit::fma ? MatrixUnit::fma : MatrixUnit::mma);
    if (newer.text.empty())
      newer.text = architecture;
  }
  if (!groupOf(MatrixUnit::mma).text.empty())
    groupOf(MatrixUnit::fma).text.clear();
  llvm::erase_if(groups, [](const Group &group) { return group.cubins.empty() && group.text.empty(); });
  return groups;
}

FailureOr<std::vector<CodeTask>> mtc::prepareGpuCode(ModuleOp module, const CodegenOptions &options) {
  MLIRContext *context = module.getContext();
  context->loadDialect<arith::ArithDialect, scf::SCFDialect, cf::ControlFlowDialect, LLVM::LLVMDialect, gpu::GPUDialect,
                       NVVM::NVVMDialect>();
  registerBuiltinDialectTranslation(*context);
  registerLLVMDialectTranslation(*context);
  registerNVVMDialectTranslation(*context);
  NormalModule normal = normalised(module, gpuLineForm);
  bool simulatesWarpgroups = llvm::is_contained(options.gpus, simulatedWarpgroupsName);
  StringRef precision = mt::Compilation(module).getPrecision();
  MatrixUnit unit = precision == "f32" ? MatrixUnit::fma : simulatesWarpgroups ? MatrixUnit::wgmma : MatrixUnit::mma;
  auto kernels = emitGpuKernels(normal, options, unit);
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
  // lowest first, without duplicates
  for (StringRef architecture : gpuArchitectures())
    if (llvm::is_contained(options.gpus, architecture))
      architectures.push_back(architecture.str());
  std::vector<CodeTask> tasks;
  if (!architectures.empty()) {
    std::string ptxas = findPtxas();
    if (ptxas.empty())
      emitRemark((*kernels)->getLoc())
          << "PTX only for GPUs: expected ptxas on PATH, in $CUDA_HOME/bin or in /usr/local/cuda/bin, found none";
    auto common = std::make_shared<CommonKernels>(lowerToNvvm(**kernels, /*ofUnit=*/false));
    for (const Group &group : groupsOf(architectures, precision, !ptxas.empty())) {
      FailureOr<OwningOpRef<ModuleOp>> others;
      if (group.unit != unit && failed(others = emitGpuKernels(normal, options, group.unit, /*unitAlone=*/true)))
        return failure();
      ModuleOp own = group.unit == unit ? **kernels : **others;
      Kernels lowered = std::make_shared<KernelModules>(lowerToNvvm(own, /*ofUnit=*/true));
      std::vector<int64_t> memory = memoryOfLaunches(*normal.module, group.unit, names.size());
      tasks.push_back({[=](auto &pool) { return makeCode(*common, *lowered, ptxas, group, names, memory, pool); },
                       /*assembles=*/!group.cubins.empty()});
    }
  }
  if (simulatesWarpgroups || llvm::is_contained(options.gpus, simulatedName)) {
    Kernels lowered = std::make_shared<KernelModules>(lowerToSimulated(**kernels));
    tasks.push_back({[=](auto &pool) { return simulate(*lowered, pool); }});
  }
  if (llvm::is_contained(options.gpus, gridsName))
    tasks.push_back({[](auto &) -> llvm::Expected<Codes> {
      constexpr StringLiteral text = "// no code";
      return Codes{
          TargetCode{targetName(gridsName), {gridsName.str()}, {text.begin(), text.end()}, gpuDevice.str(), {}, {}}};
    }});
  return tasks;
}

FailureOr<std::vector<TargetCode>> mtc::generateGpuCode(ModuleOp module, const CodegenOptions &options) {
  auto tasks = prepareGpuCode(module, options);
  if (failed(tasks))
    return failure();
  return runTasks(module, *tasks);
}
