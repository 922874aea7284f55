// SPDX-License-Identifier: Apache-2.0
//
// Makes a module smaller as long as a program says that it is still interesting: mt-reduce model.mlir --test ./test.sh.
// docs/debugging.md has the recipe.
#include "compiler/Pipeline.h"
#include "dialects/mt/MtDialect.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

namespace {

llvm::cl::opt<std::string> input(llvm::cl::Positional, llvm::cl::desc("MODULE"), llvm::cl::Required);
llvm::cl::opt<std::string> test("test", llvm::cl::Required, llvm::cl::value_desc("PROGRAM"),
                                llvm::cl::desc("program that gets the name of a file, and ends with 0 where the module "
                                               "in it is interesting"));
llvm::cl::opt<std::string> output("o", llvm::cl::init("-"), llvm::cl::value_desc("FILE"),
                                  llvm::cl::desc("file for the smallest interesting module"));
llvm::cl::opt<unsigned> seconds("seconds", llvm::cl::init(60), llvm::cl::value_desc("N"),
                                llvm::cl::desc("time limit of the program; a module that takes longer is none"));

class Reducer {
public:
  Reducer(ModuleOp module, FallbackAsmResourceMap &resources, StringRef file)
      : best(module.clone()), resources(resources), file(file) {}

  bool isInteresting(ModuleOp module) {
    std::error_code error;
    llvm::raw_fd_ostream stream(file, error);
    if (!error)
      print(module, stream);
    stream.close();
    ++tests;
    std::optional<StringRef> nowhere[] = {"", "", ""};
    return llvm::sys::ExecuteAndWait(test, {test, file}, std::nullopt, nowhere, seconds) == 0;
  }

  // Until no step makes it smaller.
  void run() {
    size_t before;
    do {
      before = opsOf(*best).size();
      eraseOps();
      replaceResults();
    } while (opsOf(*best).size() < before);
  }

  // Prints the module and the metadata of its file, such as the passes of a reproducer.
  void print(ModuleOp module, llvm::raw_ostream &stream) const {
    AsmState state(module, OpPrintingFlags().enableDebugInfo(false));
    state.attachFallbackResourcePrinter(resources);
    module->print(stream, state);
    stream << "\n";
  }

  ModuleOp result() { return *best; }
  unsigned testsRun() const { return tests; }

private:
  // Lists the ops in the order of the text: an op precedes the ops in its regions.
  static SmallVector<Operation *> opsOf(ModuleOp module) {
    SmallVector<Operation *> ops;
    module->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op != module)
        ops.push_back(op);
    });
    return ops;
  }

  // Keeps a change of a copy if the copy is valid and still interesting.
  bool attempt(llvm::function_ref<bool(ArrayRef<Operation *> ops)> change) {
    OwningOpRef<ModuleOp> copy = best->clone();
    if (!change(opsOf(*copy)) || failed(verify(*copy)) || !isInteresting(*copy))
      return false;
    best = std::move(copy);
    return true;
  }

  static bool eraseUnused(Operation *op) {
    if (!op->use_empty() || op->hasTrait<OpTrait::IsTerminator>())
      return false;
    op->erase();
    return true;
  }

  // Removes ops without users: first half of them at once, then a quarter, and so on down to one. The search goes from
  // the end, so that a user is removed before the op that it uses.
  void eraseOps() {
    for (size_t size = opsOf(*best).size(); size > 0; size /= 2)
      for (size_t end = opsOf(*best).size(); end > 0;) {
        size_t begin = end > size ? end - size : 0;
        attempt([&](ArrayRef<Operation *> ops) {
          bool changed = false;
          for (size_t i = std::min(end, ops.size()); i-- > begin;)
            changed |= eraseUnused(ops[i]);
          return changed;
        });
        end = begin;
      }
  }

  // Ops by one of their operands, by an input of the model, or by a constant.
  void replaceResults() {
    for (size_t i = opsOf(*best).size(); i-- > 0;) {
      Operation *op = opsOf(*best)[i];
      if (op->use_empty() || isa<mt::InputOp, mt::ConstantOp>(op))
        continue;
      size_t ways = op->getNumOperands() + 2;
      for (size_t way = 0; way < ways; ++way)
        if (attempt([&](ArrayRef<Operation *> ops) { return replace(ops[i], way); }))
          break;
    }
  }

  bool replace(Operation *op, size_t way) {
    for (OpResult result : op->getResults()) {
      if (result.use_empty())
        continue;
      Value value = way < op->getNumOperands() ? op->getOperand(way) : substitute(result, way == op->getNumOperands());
      if (!value || value.getType() != result.getType())
        return false;
      result.replaceAllUsesWith(value);
    }
    return eraseUnused(op);
  }

  // A new value of a result's type.
  Value substitute(OpResult result, bool isInput) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type)
      return {};
    OpBuilder builder(result.getOwner());
    if (isInput) // the verifier knows which types an input may have
      return mt::InputOp::create(builder, result.getLoc(), type, "reduced" + std::to_string(tests), IntegerAttr());
    if (!type.hasStaticShape() || !type.getElementType().isIntOrFloat())
      return {};
    Attribute one = type.getElementType().isInteger() ? Attribute(builder.getIntegerAttr(type.getElementType(), 1))
                                                      : builder.getFloatAttr(type.getElementType(), 1.0);
    return mt::ConstantOp::create(builder, result.getLoc(), DenseElementsAttr::get(type, one));
  }

  OwningOpRef<ModuleOp> best;
  FallbackAsmResourceMap &resources;
  std::string file;
  unsigned tests = 0;
};

int fail(const Twine &message) {
  llvm::errs() << "mt-reduce: error: " << message << "\n";
  return EXIT_FAILURE;
}

} // namespace

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv, "makes a module smaller while a program says that it is interesting\n");
  DialectRegistry registry;
  mtc::registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  FallbackAsmResourceMap resources;
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(input, ParserConfig(&context, true, &resources));
  if (!module)
    return EXIT_FAILURE;
  SmallString<128> file;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("mt-reduce", "mlir", file))
    return fail("cannot make a temporary file: " + error.message());
  llvm::FileRemover remover(file);
  if (llvm::sys::path::parent_path(test).empty())
    if (llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName(test))
      test = *found;
  ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
  Reducer reducer(*module, resources, file);
  if (!reducer.isInteresting(*module))
    return fail("expected " + input + " to be interesting, found that " + test + " does not end with 0 for it");
  reducer.run();
  std::error_code error;
  llvm::ToolOutputFile written(output, error, llvm::sys::fs::OF_None);
  if (error)
    return fail("cannot write " + output + ": " + error.message());
  reducer.print(reducer.result(), written.os());
  written.keep();
  llvm::errs() << "mt-reduce: " << reducer.testsRun() << " tests\n";
  return EXIT_SUCCESS;
}
