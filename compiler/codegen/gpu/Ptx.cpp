// SPDX-License-Identifier: Apache-2.0
//
// Compiles llvm.funcs with nvvm ops to PTX. Floating-point operations must not be contracted or approximated
// (docs/gpu-code.md).
#include "compiler/codegen/common/Object.h"
#include "compiler/codegen/gpu/Gpu.h"
#include "runtime/support/gpu_architecture.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Scalar/AlignmentFromAssumptions.h"
#include "llvm/Transforms/Scalar/InferAddressSpaces.h"
#include <mutex>

using namespace mlir;
using namespace mtc;

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

llvm::ArrayRef<llvm::StringRef> mtc::gpuArchitectures() {
  static const llvm::SmallVector<llvm::StringRef> names = [] {
    llvm::SmallVector<llvm::StringRef> all;
    for (const mtrun::GpuArchitecture &architecture : mtrun::gpuArchitectures)
      all.push_back(architecture.name);
    return all;
  }();
  return names;
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createMachine(StringRef architecture) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  std::string error;
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return llvm::createStringError("cannot make PTX: %s", error.c_str());
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, architecture, "", options, std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  // The first simplification would remove the casts and assumptions that state address spaces and alignment.
  builder.registerPipelineStartEPCallback([](llvm::ModulePassManager &passes, llvm::OptimizationLevel) {
    llvm::FunctionPassManager memory;
    memory.addPass(llvm::InferAddressSpacesPass());
    memory.addPass(llvm::AlignmentFromAssumptionsPass());
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(memory)));
  });
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

// The assembler unrolls loops of any size four times, which takes long. It may unroll only short loops that wait for
// memory, which are sums. The limit is a choice for the time of ptxas and changes no bits.
static void keepLoops(llvm::Module &module) {
  constexpr size_t longest = 40; // largest number of instructions of a loop that may be unrolled
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    llvm::DominatorTree tree(function);
    llvm::LoopInfo loops(tree);
    for (llvm::Loop *loop : loops.getLoopsInPreorder()) {
      size_t size = 0;
      bool stores = false;
      for (llvm::BasicBlock *block : loop->blocks()) {
        size += block->size();
        stores |= llvm::any_of(*block, llvm::IsaPred<llvm::StoreInst>);
      }
      if (size > longest || stores || !loop->isInnermost())
        loop->setLoopAlreadyUnrolled();
    }
  }
}

// Parts have tables and functions of the same names, which one text must not contain twice. No kernel has a $ in its
// name.
static void renameInternal(llvm::Module &code, size_t part) {
  auto rename = [&](llvm::GlobalValue &value) {
    if (value.hasLocalLinkage() && part > 0)
      value.setName(value.getName() + "$" + llvm::Twine(part));
  };
  llvm::for_each(code.functions(), rename);
  llvm::for_each(code.globals(), rename);
}

static llvm::Expected<std::string> compilePart(ModuleOp module, size_t part, StringRef architecture) {
  auto machine = createMachine(architecture);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  auto translated = translateToLlvm(module, context);
  if (!translated)
    return translated.takeError();
  std::unique_ptr<llvm::Module> code = std::move(*translated);
  code->setTargetTriple(llvm::Triple("nvptx64-nvidia-cuda"));
  code->setDataLayout((*machine)->createDataLayout());
  for (llvm::Function &function : *code)
    if (!function.isDeclaration()) {
      function.addFnAttr("no-builtins");
      function.addFnAttr(llvm::Attribute::NoUnwind);
    }
  renameInternal(*code, part);
  optimize(*code, **machine);
  keepLoops(*code);
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile,
                                      /*DisableVerify=*/true))
    return llvm::createStringError("cannot emit PTX for %s", architecture.str().c_str());
  passes.run(*code);
  return std::string(text.begin(), text.end());
}

// The header, equal in all parts: version and architecture.
constexpr StringLiteral endOfHeader = ".address_size 64\n";

llvm::Expected<std::string> mtc::compilePtx(ArrayRef<OwningOpRef<ModuleOp>> modules, StringRef architecture,
                                            llvm::ThreadPoolInterface &pool) {
  std::vector<std::optional<llvm::Expected<std::string>>> parts(modules.size());
  llvm::ThreadPoolTaskGroup threads(pool);
  for (auto [i, module] : llvm::enumerate(modules))
    threads.async(
        [&parts, i, module = *module, architecture] { parts[i].emplace(compilePart(module, i, architecture)); });
  threads.wait();
  std::string text;
  llvm::Error failed = llvm::Error::success();
  for (std::optional<llvm::Expected<std::string>> &part : parts) {
    if (!*part)
      failed = llvm::joinErrors(std::move(failed), part->takeError());
    else
      text += text.empty() ? StringRef(**part) : StringRef(**part).split(endOfHeader).second;
  }
  if (failed)
    return std::move(failed);
  return text;
}
