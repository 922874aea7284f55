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

// The passes of LLVM's pipeline O2 that change this code, in its order, without its passes for calls, for vectors and
// for what earlier passes may have left over: instcombine alone ran seven times. They take seven tenths of the time of
// O2, and the assembler makes code of the same size and number of registers of the result.
constexpr StringLiteral pipeline =
    "function(infer-address-spaces,alignment-from-assumptions)," // before the casts and assumptions are simplified
    "function(nvvm-intr-range),function(simplifycfg<speculate-blocks>,sroa,early-cse),ipsccp,"
    "function(instcombine<no-verify-fixpoint>),cgscc(inline,"
    "function(early-cse<memssa>,correlated-propagation,simplifycfg,instcombine<no-verify-fixpoint>,reassociate,"
    "loop-mssa(loop-instsimplify,licm<no-allowspeculation>,loop-rotate<header-duplication>,licm,"
    "simple-loop-unswitch<no-nontrivial;trivial>),simplifycfg,instcombine<no-verify-fixpoint>,"
    "loop(indvars,loop-deletion,loop-unroll-full),gvn,bdce,instcombine<no-verify-fixpoint>,"
    "correlated-propagation,adce,dse,loop-mssa(licm),"
    "simplifycfg<switch-range-to-icmp;hoist-common-insts;sink-common-insts>),function-attrs),"
    "function(drop-unnecessary-assumes,loop-unroll<O2>,infer-alignment,instcombine<no-verify-fixpoint>,"
    "early-cse<memssa>,loop-mssa(licm),div-rem-pairs,adce,"
    "simplifycfg<hoist-loads-stores-with-cond-faulting;speculate-unpredictables>),globaldce";

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  llvm::cantFail(builder.parsePassPipeline(passes, pipeline));
  passes.run(module, modules);
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

void mtc::joinPtx(std::string &text, StringRef more) { text += text.empty() ? more : more.split(endOfHeader).second; }

llvm::Expected<std::string> mtc::compilePtx(ArrayRef<OwningOpRef<ModuleOp>> modules, size_t first,
                                            StringRef architecture, llvm::ThreadPoolInterface &pool) {
  std::vector<std::optional<llvm::Expected<std::string>>> parts(modules.size());
  llvm::ThreadPoolTaskGroup threads(pool);
  for (auto [i, module] : llvm::enumerate(modules))
    threads.async([&parts, i, first, module = *module, architecture] {
      parts[i].emplace(compilePart(module, first + i, architecture));
    });
  threads.wait();
  std::string text;
  llvm::Error failed = llvm::Error::success();
  for (std::optional<llvm::Expected<std::string>> &part : parts) {
    if (!*part)
      failed = llvm::joinErrors(std::move(failed), part->takeError());
    else
      joinPtx(text, **part);
  }
  if (failed)
    return std::move(failed);
  return text;
}
