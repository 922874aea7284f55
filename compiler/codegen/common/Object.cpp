// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/common/Object.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include <mutex>

using namespace mlir;
using namespace mtc;

llvm::Expected<std::unique_ptr<llvm::Module>> mtc::translateToLlvm(ModuleOp module, llvm::LLVMContext &context) {
  // Both steps change the MLIR context, which may be one without locks.
  static std::mutex one;
  std::lock_guard<std::mutex> guard(one);
  PassManager passes(module.getContext());
  passes.enableVerifier(false);
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  if (failed(passes.run(module)))
    return llvm::createStringError("cannot lower kernels to the llvm dialect");
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context, "kernels");
  if (!code)
    return llvm::createStringError("cannot translate kernels to LLVM IR");
  return code;
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createMachine(const CpuTarget &target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
  std::string error;
  llvm::Triple parsed(target.triple);
  const llvm::Target *llvmTarget = llvm::TargetRegistry::lookupTarget(parsed, error);
  if (!llvmTarget)
    return llvm::createStringError(error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(llvmTarget->createTargetMachine(
      parsed, target.cpu, "", options, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

namespace {

// Asks the code generator for each function's frame, which it tells as a warning.
class FrameSizes : public llvm::DiagnosticHandler {
public:
  explicit FrameSizes(llvm::StringMap<uint64_t> &sizes) : sizes(sizes) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    auto *size = llvm::dyn_cast<llvm::DiagnosticInfoStackSize>(&info);
    if (size)
      sizes[size->getFunction().getName()] = size->getStackSize();
    return size != nullptr;
  }
  static void ask(llvm::Function &function) { function.addFnAttr("warn-stack-size", "0"); }

private:
  llvm::StringMap<uint64_t> &sizes;
};

// What a function takes of the stack, and whom it calls.
struct Frame {
  uint64_t bytes;
  std::vector<std::string> callees;
  bool isKernel; // visible outside of the plan's code
};
using Frames = llvm::StringMap<Frame>;

struct Part {
  Object object;
  Frames frames;
};

} // namespace

static Frames framesOf(const llvm::Module &code, const llvm::StringMap<uint64_t> &sizes) {
  Frames frames;
  for (const llvm::Function &function : code) {
    if (function.isDeclaration())
      continue;
    bool isKernel = !function.hasLocalLinkage() && !function.hasHiddenVisibility();
    Frame frame{sizes.lookup(function.getName()), {}, isKernel};
    for (const llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction))
        if (const llvm::Function *callee = call->getCalledFunction(); callee && !callee->isIntrinsic())
          frame.callees.push_back(callee->getName().str());
    frames[function.getName()] = std::move(frame);
  }
  return frames;
}

// Bytes of stack that a call of a function takes, with whatever it calls. Kernels do not recurse.
static uint64_t stackOf(StringRef name, const Frames &frames) {
  constexpr uint64_t returnAddress = 8;
  auto frame = frames.find(name);
  if (frame == frames.end())
    return 0;
  uint64_t deepest = 0;
  for (const std::string &callee : frame->second.callees)
    deepest = std::max(deepest, stackOf(callee, frames));
  return frame->second.bytes + returnAddress + deepest;
}

static llvm::Error checkStack(const Frames &frames, uint64_t most) {
  for (const auto &[name, frame] : frames)
    if (uint64_t stack = frame.isKernel ? stackOf(name, frames) : 0; stack > most)
      return llvm::createStringError("kernel " + name + ": expected at most " + llvm::Twine(most) +
                                     " bytes of stack, found " + llvm::Twine(stack));
  return llvm::Error::success();
}

static llvm::Expected<Part> compilePart(ModuleOp module, const CpuTarget &target) {
  llvm::LLVMContext context;
  auto translated = translateToLlvm(module, context);
  if (!translated)
    return translated.takeError();
  std::unique_ptr<llvm::Module> code = std::move(*translated);
  auto created = createMachine(target);
  if (!created)
    return created.takeError();
  std::unique_ptr<llvm::TargetMachine> machine = std::move(*created);
  code->setTargetTriple(llvm::Triple(target.triple));
  code->setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : *code) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.cpu);
    if (!target.tune.empty())
      function.addFnAttr("tune-cpu", target.tune);
    function.addFnAttr("prefer-vector-width", std::to_string(target.vectors.bits));
    FrameSizes::ask(function);
    function.addFnAttr("no-builtins");
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
  Part part;
  llvm::raw_svector_ostream stream(part.object);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile, /*DisableVerify=*/true))
    return llvm::createStringError("cannot emit objects for %s", target.cpu.c_str());
  llvm::StringMap<uint64_t> sizes;
  context.setDiagnosticHandler(std::make_unique<FrameSizes>(sizes));
  passes.run(*code);
  part.frames = framesOf(*code, sizes);
  return part;
}

llvm::Expected<std::vector<Object>> mtc::compileObjects(ArrayRef<OwningOpRef<ModuleOp>> modules,
                                                        const CpuTarget &target, uint64_t maxStack,
                                                        llvm::ThreadPoolInterface &pool) {
  std::vector<std::optional<llvm::Expected<Part>>> parts(modules.size());
  llvm::ThreadPoolTaskGroup threads(pool);
  for (auto [module, part] : llvm::zip_equal(modules, parts))
    threads.async([&] { part.emplace(compilePart(*module, target)); });
  threads.wait();
  std::vector<Object> objects;
  Frames frames;
  llvm::Error failed = llvm::Error::success();
  for (std::optional<llvm::Expected<Part>> &part : parts) {
    if (!*part) {
      failed = llvm::joinErrors(std::move(failed), part->takeError());
      continue;
    }
    objects.push_back(std::move((*part)->object));
    for (auto &[name, frame] : (*part)->frames)
      frames[name] = std::move(frame);
  }
  if (!failed)
    failed = checkStack(frames, maxStack);
  if (failed)
    return std::move(failed);
  return objects;
}
