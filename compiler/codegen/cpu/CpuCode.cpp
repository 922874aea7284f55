// SPDX-License-Identifier: Apache-2.0
//
// Code for CPUs: emits every plan.kernel as a function, and compiles the functions for each target.
#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/KernelKinds.h"
#include "compiler/codegen/common/Object.h"
#include "compiler/codegen/cpu/Kernels.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "runtime/abi/kernel.h"
#include "runtime/abi/kernel_symbol.h"
#include <memory>

using namespace mlir;
using namespace mtc;

namespace {
struct CpuModule : NormalModule {
  llvm::DenseMap<Operation *, Grid> grids;
};
} // namespace

namespace {
// Receives the functions: a kernel with its symbol, and functions that kernels share with an empty symbol.
using Taker = llvm::function_ref<void(OwningOpRef<ModuleOp>, StringRef symbol)>;
} // namespace

// Emits the function of a kernel into a module of its own. Returns its bytes of scratch memory.
static FailureOr<int64_t> emitKernel(Kernel &kernel, llvm::function_ref<LogicalResult(Kernel &)> body) {
  Emitter &emit = kernel.emit;
  LogicalResult result = success();
  SmallVector<Type> arguments{emit.pointer(), emit.pointer(), emit.getI64Type(), emit.getI64Type()};
  emit.function("kernel", arguments, /*internal=*/false, [&](ValueRange values) {
    kernel.params = values[0];
    kernel.buffers = values[1];
    kernel.tileBegin = values[2];
    kernel.tileEnd = values[3];
    result = body(kernel);
  });
  if (failed(result))
    return failure();
  return emit.scratchBytes();
}

// Emits all kernels and mt_sum for one vector unit. Returns the bytes of scratch memory of each kernel.
static FailureOr<std::vector<int64_t>> emitKernels(const CpuModule &normal, const CodegenOptions &options,
                                                   VectorUnit vectors, Taker take) {
  vectors.doubles = options.doubles;
  SharedCode shared;
  std::vector<int64_t> scratch;
  auto write = [&](plan::KernelOp op, mt::KernelKind kind, Grid grid, LineForm form, StringRef symbol,
                   llvm::function_ref<LogicalResult(Kernel &)> body) -> LogicalResult {
    std::unique_lock<std::mutex> lock(contextMutex());
    OwningOpRef<ModuleOp> module = ModuleOp::create(normal.module.get().getLoc());
    Emitter emit(*module, vectors, &shared);
    Kernel kernel{emit, op, kind, grid, options.shardRows, options.fast, {}, {}, {}, {}, form};
    FailureOr<int64_t> bytes = emitKernel(kernel, body);
    lock.unlock();
    if (failed(bytes))
      return failure();
    scratch.push_back(*bytes);
    take(std::move(module), symbol);
    for (OwningOpRef<ModuleOp> &common : shared.modules)
      take(std::move(common), "");
    shared.modules.clear();
    return success();
  };
  ModuleOp module = *normal.module;
  for (auto op : module.getOps<plan::KernelOp>())
    if (failed(write(op, op.getKind(), normal.grids.at(op), normal.forms.at(op), mtrun::kernelSymbol(op.getSymName()),
                     codeOf(op).emitCpu)))
      return failure();
  auto emitSums = [](Kernel &kernel) { return emitSum(kernel), success(); };
  if (failed(write({}, mt::KernelKind::elementwise, Grid{0, 1, elementwiseElementsPerTile}, {}, mtrun::sumKernelName,
                   emitSums)))
    return failure();
  scratch.pop_back(); // of mt_sum, which is not a kernel of the plan
  return scratch;
}

static CpuModule normalisedForCpu(ModuleOp module) {
  module.getContext()->loadDialect<arith::ArithDialect, scf::SCFDialect, cf::ControlFlowDialect, LLVM::LLVMDialect>();
  llvm::DenseMap<Operation *, Grid> grids;
  NormalModule normal = normalised(module, [&](plan::KernelOp op) {
    grids[op] = codeOf(op).cpuGrid(op);
    return cpuLineForm(op);
  });
  return {std::move(normal), std::move(grids)};
}

FailureOr<int64_t> mtc::maxScratch(ModuleOp module, const CodegenOptions &options) {
  CpuModule normal = normalisedForCpu(module);
  int64_t most = 0;
  for (const std::string &name : options.targets) {
    auto target = findTarget(name);
    if (!target)
      return module.emitError(llvm::toString(target.takeError()));
    auto scratch = emitKernels(normal, options, target->vectors, [](OwningOpRef<ModuleOp>, StringRef) {});
    if (failed(scratch))
      return failure();
    for (int64_t bytes : *scratch)
      most = std::max(most, bytes);
  }
  return most;
}

// Generates the code for one target.
static llvm::Expected<std::vector<TargetCode>> makeCode(const CpuModule &normal, const CodegenOptions &options,
                                                        const CpuTarget &target, llvm::ThreadPoolInterface &pool) {
  ObjectCompiler compiler(target, pool);
  auto scratch = emitKernels(normal, options, target.vectors, [&](OwningOpRef<ModuleOp> code, StringRef symbol) {
    symbol.empty() ? compiler.add(std::move(code)) : compiler.addKernel(std::move(code), symbol);
  });
  if (failed(scratch))
    return llvm::make_error<Reported>();
  auto elf = compiler.link(MT_KERNEL_STACK_BYTES);
  if (!elf)
    return elf.takeError();
  return std::vector{TargetCode{target.name, target.features, std::move(*elf), "cpu", {}, std::move(*scratch)}};
}

FailureOr<std::vector<CodeTask>> mtc::prepareCode(ModuleOp module, const CodegenOptions &options) {
  std::vector<CodeTask> tasks;
  if (options.targets.empty())
    return tasks;
  auto normal = std::make_shared<CpuModule>(normalisedForCpu(module));
  registerBuiltinDialectTranslation(*module.getContext());
  registerLLVMDialectTranslation(*module.getContext());
  for (const std::string &name : options.targets) {
    auto target = findTarget(name);
    if (!target)
      return module.emitError(llvm::toString(target.takeError()));
    tasks.push_back({[=, target = *target](auto &pool) { return makeCode(*normal, options, target, pool); }});
  }
  return tasks;
}

FailureOr<std::vector<TargetCode>> mtc::generateCode(ModuleOp module, const CodegenOptions &options) {
  auto tasks = prepareCode(module, options);
  if (failed(tasks))
    return failure();
  return runTasks(module, *tasks);
}
