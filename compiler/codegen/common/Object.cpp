// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/common/Object.h"
#include "compiler/codegen/common/ContentHash.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include <limits>
#include <mutex>

using namespace mlir;
using namespace mtc;

std::mutex &mtc::contextMutex() {
  static std::mutex one;
  return one;
}

llvm::Expected<std::unique_ptr<llvm::Module>> mtc::translateToLlvm(ModuleOp module, llvm::LLVMContext &context) {
  std::lock_guard<std::mutex> guard(contextMutex());
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

// Collects the frame size of each function, which LLVM reports as a warning.
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

// Stack size and callees of a function.
struct Frame {
  uint64_t bytes;
  std::vector<std::string> callees;
};
using Frames = llvm::StringMap<Frame>;

} // namespace

struct mtc::CompiledModule {
  Object object;
  Frames frames;
  std::string error; // empty: no error
};

using CompiledPtr = std::shared_ptr<const CompiledModule>;

static Frames framesOf(const llvm::Module &code, const llvm::StringMap<uint64_t> &sizes) {
  Frames frames;
  for (const llvm::Function &function : code) {
    if (function.isDeclaration())
      continue;
    Frame frame{sizes.lookup(function.getName()), {}};
    for (const llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction))
        if (const llvm::Function *callee = call->getCalledFunction(); callee && !callee->isIntrinsic())
          frame.callees.push_back(callee->getName().str());
    frames[function.getName()] = std::move(frame);
  }
  return frames;
}

// Bytes of stack of a call, including all callees. Kernels do not recurse.
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

// LLVM IR for code generation, with the context that owns it.
struct Lowered {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
};

static void prepare(llvm::Function &function, const CpuTarget &target) {
  function.addFnAttr("target-cpu", target.cpu);
  if (!target.tune.empty())
    function.addFnAttr("tune-cpu", target.tune);
  if (!target.extensions.empty())
    function.addFnAttr("target-features", target.extensions);
  function.addFnAttr("prefer-vector-width", std::to_string(target.vectors.bits));
  FrameSizes::ask(function);
  function.addFnAttr("no-builtins");
  function.addFnAttr(llvm::Attribute::NoUnwind);
}

static llvm::Expected<CompiledModule> compile(Lowered &lowered, const CpuTarget &target) {
  auto created = createMachine(target);
  if (!created)
    return created.takeError();
  std::unique_ptr<llvm::TargetMachine> machine = std::move(*created);
  llvm::Module &code = *lowered.module;
  code.setTargetTriple(llvm::Triple(target.triple));
  code.setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : code)
    if (!function.isDeclaration())
      prepare(function, target);
  CompiledModule compiled;
  llvm::raw_svector_ostream stream(compiled.object);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile, /*DisableVerify=*/true))
    return llvm::createStringError("cannot emit objects for %s", target.cpu.c_str());
  llvm::StringMap<uint64_t> sizes;
  lowered.context.setDiagnosticHandler(std::make_unique<FrameSizes>(sizes));
  passes.run(code);
  compiled.frames = framesOf(code, sizes);
  return compiled;
}

namespace {

// Code that this process has compiled, by a key of everything on which the code depends. A training step and its check
// share most kernels and are compiled at the same time.
class CodeCache {
public:
  using Entry = std::shared_future<CompiledPtr>;
  // The entry for a key, and for a new entry the promise that the caller must fulfill.
  std::pair<Entry, std::optional<std::promise<CompiledPtr>>> find(const std::string &key) {
    std::lock_guard<std::mutex> guard(mutex);
    if (auto known = entries.find(key); known != entries.end())
      return {known->second, std::nullopt};
    std::promise<CompiledPtr> promise;
    Entry entry = promise.get_future().share();
    entries.insert({key, entry});
    return {entry, std::move(promise)};
  }
  // Adds to the number of bytes of compiled code. Above the limit, the cache is cleared; entries in use stay with their
  // users.
  void count(size_t added) {
    std::lock_guard<std::mutex> guard(mutex);
    bytes += added;
    if (bytes <= maxBytes)
      return;
    entries.clear();
    bytes = 0;
  }

private:
  static constexpr size_t maxBytes = 64 << 20;
  std::mutex mutex;
  llvm::StringMap<Entry> entries;
  size_t bytes = 0;
};

CodeCache &codeCache() {
  static CodeCache cache;
  return cache;
}

// Hash of the complete text of a module, independent of the program's printing flags.
std::string hashOf(ModuleOp module) {
  std::lock_guard<std::mutex> guard(contextMutex());
  std::string text;
  llvm::raw_string_ostream stream(text);
  constexpr int64_t all = std::numeric_limits<int64_t>::max();
  OpPrintingFlags flags;
  flags.useLocalScope().assumeVerified().printGenericOpForm();
  flags.elideLargeElementsAttrs(all).elideLargeResourceString(all);
  module.print(stream, flags);
  return contentHash(text);
}

} // namespace

ObjectCompiler::ObjectCompiler(CpuTarget target, llvm::ThreadPoolInterface &pool)
    : target(std::move(target)), pool(pool) {}

ObjectCompiler::Compiled ObjectCompiler::start(ModuleOp module, const std::string &key) {
  auto [entry, made] = codeCache().find(key);
  if (!made)
    return entry;
  auto promise = std::make_shared<std::promise<CompiledPtr>>(std::move(*made));
  auto finish = [promise](llvm::Expected<CompiledModule> compiled) {
    auto result = std::make_shared<CompiledModule>();
    if (compiled)
      *result = std::move(*compiled);
    else
      result->error = llvm::toString(compiled.takeError());
    codeCache().count(result->object.size());
    promise->set_value(std::move(result));
  };
  auto lowered = std::make_shared<Lowered>();
  auto translated = translateToLlvm(module, lowered->context);
  if (!translated) {
    finish(translated.takeError());
    return entry;
  }
  lowered->module = std::move(*translated);
  pool.async([lowered, finish, target = target]() mutable {
    finish(compile(*lowered, target));
    lowered.reset();
  });
  return entry;
}

void ObjectCompiler::add(OwningOpRef<ModuleOp> module) {
  std::string hash = hashOf(*module);
  add(std::move(module), hash);
}

void ObjectCompiler::add(OwningOpRef<ModuleOp> module, const std::string &hash) {
  compiled.push_back(start(*module, target.name + " " + hash));
  module = {};
  for (size_t most = 8 * pool.getMaxConcurrency(); compiled.size() > waited + most; ++waited)
    compiled[waited].wait();
}

void ObjectCompiler::addKernel(OwningOpRef<ModuleOp> module, StringRef name) {
  auto function = llvm::find_if(module->getOps<LLVM::LLVMFuncOp>(), [](auto op) { return !op.isExternal(); });
  // The symbol is derived from the code, so that equal code has equal symbols, whatever its name in the plan.
  (*function).setSymName("kernel");
  (*function).setVisibility_(LLVM::Visibility::Hidden);
  std::string hash = hashOf(*module);
  (*function).setSymName("kernel_" + hash);
  kernels.push_back({name.str(), (*function).getSymName().str()});
  add(std::move(module), hash);
}

static llvm::Error checkStack(ArrayRef<Alias> kernels, const Frames &frames, uint64_t most) {
  for (const auto &[name, symbol] : kernels)
    if (uint64_t stack = stackOf(symbol, frames); stack > most)
      return llvm::createStringError("kernel " + name + ": expected at most " + llvm::Twine(most) +
                                     " bytes of stack, found " + llvm::Twine(stack));
  return llvm::Error::success();
}

llvm::Expected<std::vector<char>> ObjectCompiler::link(uint64_t maxStack) {
  std::vector<const Object *> objects;
  llvm::DenseSet<const Object *> known; // kernels with equal code share one object
  Frames frames;
  llvm::Error failed = llvm::Error::success();
  for (const Compiled &each : compiled) {
    const CompiledModule &module = *each.get();
    if (!module.error.empty())
      failed = llvm::joinErrors(std::move(failed), llvm::createStringError(module.error));
    if (!known.insert(&module.object).second)
      continue;
    objects.push_back(&module.object);
    for (auto &[name, frame] : module.frames)
      frames[name] = frame;
  }
  if (!failed)
    failed = checkStack(kernels, frames, maxStack);
  if (failed)
    return std::move(failed);
  return linkShared(objects, kernels);
}
