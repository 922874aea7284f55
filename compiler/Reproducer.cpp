// SPDX-License-Identifier: Apache-2.0
#include "compiler/Reproducer.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace mtc {

std::string printedModule(ModuleOp module, bool locations) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, OpPrintingFlags().enableDebugInfo(locations).useLocalScope());
  stream << "\n";
  return text;
}

std::string reproducer(ModuleOp module, OpPassManager &passes, bool locations) {
  // The last pass, which writes the plan, is none of mt-opt's.
  if (llvm::any_of(passes.getPasses(), [](Pass &pass) { return pass.getArgument().empty(); }))
    return printedModule(module, locations);
  std::string pipeline, text = printedModule(module, locations);
  llvm::raw_string_ostream names(pipeline), stream(text);
  passes.printAsTextualPipeline(names);
  // As an AsmResourcePrinter does, which prints nothing with useLocalScope.
  stream << "\n{-#\n  external_resources: {\n    mlir_reproducer: {\n      pipeline: \"";
  llvm::printEscapedString(pipeline, stream);
  stream << "\",\n      disable_threading: true,\n      verify_each: true\n    }\n  }\n#-}\n";
  return text;
}

// Verifies the op and returns the errors, which reach no other diagnostic handler.
static std::vector<std::string> verifierErrors(Operation *op) {
  std::vector<std::string> errors;
  ScopedDiagnosticHandler handler(op->getContext(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      errors.push_back(diagnostic.str());
    return success();
  });
  (void)verify(op);
  return errors;
}

// The pass manager verifies what a pass leaves only where the pass itself has not failed. So the errors since the pass
// began are the verifier's alone if, and only if, the fault is the pass's.
class FaultInstrumentation : public PassInstrumentation {
public:
  explicit FaultInstrumentation(FaultFinder &finder) : finder(finder) {}

  void runBeforePass(Pass *, Operation *) override { finder.errors.clear(); }
  void runAfterPassFailed(Pass *pass, Operation *op) override {
    if (finder.errors.empty() || finder.errors == verifierErrors(op))
      finder.faultyPass = pass->getArgument().str();
  }

private:
  FaultFinder &finder;
};

FaultFinder::FaultFinder(ModuleOp module, PassManager &passes)
    : before(module.clone()), passes(passes), handler(module.getContext(), [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          errors.push_back(diagnostic.str());
        return failure(); // others show it
      }) {
  passes.addInstrumentation(std::make_unique<FaultInstrumentation>(*this));
}

LogicalResult FaultFinder::fail(StringRef stage, bool ran) {
  if (!ran && faultyPass.empty())
    return failure();
  std::string text = reproducer(*before, passes, /*locations=*/true),
              where = ran ? "after the passes of the stage '" + stage.str() + "'" : "in the pass '" + faultyPass + "'";
  SmallString<128> path;
  int descriptor = -1;
  llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, path);
  llvm::sys::path::append(path, "mtc-reproducer-%%%%%%%%.mlir");
  std::string model(path.str());
  // A new file, which its owner alone reads.
  std::error_code error = llvm::sys::fs::createUniqueFile(model, descriptor, path, llvm::sys::fs::OF_None,
                                                          llvm::sys::fs::owner_read | llvm::sys::fs::owner_write);
  if (!error) {
    llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream << text;
    stream.close();
    error = stream.error();
    stream.clear_error();
  }
  InFlightDiagnostic report = emitError(UnknownLoc::get(before->getContext()))
                              << "a fault of mtc, " << where << ", and not of the model: ";
  if (error)
    return report << "no reproducer could be written to " << path << ": " << error.message();
  return report << "please report it, with " << path << ", which mt-opt --run-reproducer runs";
}

} // namespace mtc
