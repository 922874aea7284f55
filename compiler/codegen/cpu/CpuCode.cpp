// SPDX-License-Identifier: Apache-2.0
//
// Code for CPUs: every plan.kernel as a function, compiled for each target.
#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/KernelKinds.h"
#include "compiler/codegen/common/Object.h"
#include "compiler/codegen/cpu/Kernels.h"
#include "runtime/abi/kernel.h"
#include "runtime/abi/kernel_symbol.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include <memory>

using namespace mlir;
using namespace mtc;

static int64_t numberOfOps(ModuleOp module) {
  int64_t count = 0;
  module.walk([&](Operation *) { ++count; });
  return count;
}

namespace {
struct CpuModule : NormalModule {
  llvm::DenseMap<Operation *, Grid> grids;
};
} // namespace

// The functions of all kernels for one vector unit, in parts, and the bytes of scratch that each takes.
static FailureOr<KernelModules> emitKernels(const CpuModule &normal, const CodegenOptions &options,
                                            const VectorUnit &vectors, std::vector<int64_t> &scratch) {
  ModuleOp module = *normal.module;
  KernelModules parts;
  SharedFunctions functions;
  std::unique_ptr<Emitter> emit;
  auto bind = [](Kernel &kernel, ValueRange values) {
    kernel.params = values[0];
    kernel.buffers = values[1];
    kernel.tileBegin = values[2];
    kernel.tileEnd = values[3];
  };
  auto write = [&](StringRef name, Kernel &kernel, llvm::function_ref<LogicalResult(Kernel &)> body) {
    LogicalResult result = success();
    SmallVector<Type> arguments{emit->pointer(), emit->pointer(), emit->getI64Type(), emit->getI64Type()};
    emit->function(name, arguments, /*internal=*/false, [&](ValueRange values) {
      bind(kernel, values);
      result = body(kernel);
    });
    return result;
  };
  auto begin = [&] {
    parts.push_back(ModuleOp::create(module.getLoc()));
    emit = std::make_unique<Emitter>(*parts.back(), vectors, &functions);
  };
  begin();
  for (auto op : module.getOps<plan::KernelOp>()) {
    if (numberOfOps(*parts.back()) >= opsOfPart)
      begin();
    const KernelCode &code = codeOf(op);
    Kernel kernel{*emit, op, op.getKind(), normal.grids.at(op), options.shardRows, options.fast, {}, {}, {}, {},
                  normal.forms.at(op)};
    emit->setLoc(op.getLoc());
    if (failed(write(mtrun::kernelSymbol(op.getSymName()), kernel, code.emitCpu)))
      return failure();
    scratch.push_back(emit->scratchBytes());
  }
  Kernel sum{*emit, {}, mt::KernelKind::elementwise, Grid{0, 1, elementwiseElementsPerTile}, 1, false, {}, {}, {}, {}};
  if (failed(write(mtrun::sumKernelName, sum, [](Kernel &kernel) { return emitSum(kernel), success(); })))
    return failure();
  return parts;
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
    std::vector<int64_t> scratch;
    if (failed(emitKernels(normal, options, target->vectors, scratch)))
      return failure();
    for (int64_t bytes : scratch)
      most = std::max(most, bytes);
  }
  return most;
}

FailureOr<std::vector<CodeTask>> mtc::prepareCode(ModuleOp module, const CodegenOptions &options) {
  std::vector<CodeTask> tasks;
  if (options.targets.empty())
    return tasks;
  CpuModule normal = normalisedForCpu(module);
  registerBuiltinDialectTranslation(*module.getContext());
  registerLLVMDialectTranslation(*module.getContext());
  for (const std::string &name : options.targets) {
    auto target = findTarget(name);
    if (!target)
      return module.emitError(llvm::toString(target.takeError()));
    std::vector<int64_t> scratch;
    auto code = emitKernels(normal, options, target->vectors, scratch);
    if (failed(code))
      return failure();
    auto parts = std::make_shared<KernelModules>(std::move(*code));
    auto compile = [parts, target = *target, scratch](auto &pool) -> llvm::Expected<std::vector<TargetCode>> {
      auto objects = compileObjects(*parts, target, MT_KERNEL_STACK_BYTES, pool);
      if (!objects)
        return objects.takeError();
      auto elf = linkShared(*objects);
      if (!elf)
        return elf.takeError();
      return std::vector{TargetCode{target.name, target.features, std::move(*elf), "cpu", {}, scratch}};
    };
    tasks.push_back({std::move(compile)});
  }
  return tasks;
}

FailureOr<std::vector<TargetCode>> mtc::generateCode(ModuleOp module, const CodegenOptions &options) {
  auto tasks = prepareCode(module, options);
  if (failed(tasks))
    return failure();
  return runTasks(module, *tasks);
}
