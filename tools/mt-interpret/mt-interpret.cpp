// SPDX-License-Identifier: Apache-2.0
//
// Interprets an .mlir file in double precision, on the inputs in its comments (compiler/interpret/Script.h). The file
// has a model, which is differentiated first, or programs at any stage before code generation.
#include "compiler/Passes.h"
#include "compiler/interpret/Script.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

namespace cl = llvm::cl;

static cl::opt<std::string> input(cl::Positional, cl::desc("FILE.mlir"), cl::init("-"));
static cl::list<std::string> programs("run", cl::desc("programs to run after init, in order (train_step)"),
                                      cl::CommaSeparated);
static cl::opt<int64_t> shards("shards", cl::desc("shards of a program after mt-partition"), cl::init(1));
static cl::opt<int64_t>
    batch("batch", cl::desc("global batch, which determines the samples of a shard (default: the samples of the file)"),
          cl::init(0));
static cl::opt<uint64_t> seed("seed", cl::desc("seed for random numbers"), cl::init(0));

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "mt-interpret: runs a model or program in double precision\n");
  auto file = llvm::MemoryBuffer::getFileOrSTDIN(input);
  if (!file) {
    llvm::errs() << "mt-interpret: cannot read " << input << ": " << file.getError().message() << '\n';
    return 1;
  }
  llvm::Expected<mtc::Script> script = mtc::parseScript((*file)->getBuffer());
  if (!script) {
    llvm::errs() << input << ": " << llvm::toString(script.takeError()) << '\n';
    return 1;
  }
  mlir::DialectRegistry registry;
  registry.insert<mlir::mt::MtDialect, mlir::shard::ShardDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*file), {});
  mlir::SourceMgrDiagnosticHandler diagnostics(sources, &context);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  if (!module)
    return 1;
  if (!module->getOps<mlir::mt::ModelOp>().empty()) {
    mlir::PassManager passes(&context);
    passes.addPass(mtc::createUnroll());
    passes.addPass(mtc::createExpandOptimizer());
    passes.addPass(mtc::createDifferentiate());
    if (mlir::failed(passes.run(*module)))
      return 1;
  }
  mtc::Step step;
  step.shards = shards;
  step.batch = batch;
  step.seed = seed;
  if (programs.empty())
    programs.push_back("train_step");
  return mlir::failed(mtc::runScript(*module, *script, programs, step, llvm::outs()));
}
