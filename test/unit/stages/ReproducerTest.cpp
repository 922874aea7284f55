// SPDX-License-Identifier: Apache-2.0
#include "compiler/Passes.h"
#include "compiler/Pipeline.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

#include <filesystem>

using namespace mlir;

namespace {

enum class Fault { breaksIr, saysNothing, refuses, refusesAndBreaks };

struct Faulty : PassWrapper<Faulty, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Faulty)

  explicit Faulty(Fault fault) : fault(fault) {}
  StringRef getArgument() const override { return "test-faulty"; }
  void runOnOperation() override {
    if (fault == Fault::breaksIr || fault == Fault::refusesAndBreaks)
      getOperation().walk(
          [](mt::VariableOp variable) { variable->getResult(0).setType(IndexType::get(variable.getContext())); });
    if (fault == Fault::breaksIr)
      return;
    if (fault != Fault::saysNothing)
      getOperation().emitError("expected another model");
    signalPassFailure();
  }

  Fault fault;
};

template <Fault fault> void addFaulty(OpPassManager &passes, mtc::Compilation &) {
  passes.addPass(std::make_unique<Faulty>(fault));
}

LogicalResult takeAll(ModuleOp) { return success(); }
LogicalResult refuseAll(ModuleOp module) { return module.emitError("expected no op of mt, found one"); }
void addNothing(OpPassManager &passes, mtc::Compilation &) { passes.addPass(mtc::createUnroll()); }

constexpr char model[] = R"(mt.model @small {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.variable "w" init(zeros) : tensor<4xf32>
  %0 = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
  %1 = mt.reduce sum, %0 over [1] : tensor<?x4xf32>
  mt.loss "loss", %1 : tensor<?xf32>
  mt.sgd <{learning_rate = 0.1 : f32}>
}
)";

// The errors of a stage on a small model.
std::string errorsOf(const mtc::Stage &stage) {
  DialectRegistry registry;
  mtc::registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string errors;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { errors += diagnostic.str() + "\n"; });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(model, &context);
  mtc::Compilation compilation;
  EXPECT_TRUE(module && failed(mtc::runStage(stage, *module, compilation)));
  return errors;
}

// The text of the file that a message names, which is then removed.
std::string takeFile(const std::string &message) {
  size_t begin = message.find("please report it, with "), end = message.find(", which mt-opt");
  if (begin == std::string::npos || end == std::string::npos)
    return "none: " + message;
  std::string path = message.substr(begin + 23, end - begin - 23);
  auto permissions = std::filesystem::status(path).permissions();
  EXPECT_EQ(permissions & std::filesystem::perms(077), std::filesystem::perms::none);
  auto file = llvm::MemoryBuffer::getFile(path);
  std::string text = file ? (*file)->getBuffer().str() : "not there";
  std::filesystem::remove(path);
  return text;
}

} // namespace

TEST(Reproducer, HoldsWhatAFaultyPassWasGiven) {
  std::string errors = errorsOf({"break", "", addFaulty<Fault::breaksIr>, takeAll});
  EXPECT_NE(errors.find("a fault of mtc, in the pass 'test-faulty', and not of the model"), std::string::npos)
      << errors;
  std::string text = takeFile(errors);
  EXPECT_NE(text.find("mt.variable \"w\" init(zeros) : tensor<4xf32>"), std::string::npos) << text;
  EXPECT_NE(text.find("pipeline: \"builtin.module(test-faulty"), std::string::npos) << text;
}

TEST(Reproducer, IsMadeWhereAPassSaysNothing) {
  std::string errors = errorsOf({"silent", "", addFaulty<Fault::saysNothing>, takeAll});
  EXPECT_NE(takeFile(errors).find("test-faulty"), std::string::npos) << errors;
}

TEST(Reproducer, IsMadeWhereAStageDoesNotKeepItsPromise) {
  std::string errors = errorsOf({"promise", "", addNothing, refuseAll});
  EXPECT_NE(errors.find("after the passes of the stage 'promise'"), std::string::npos) << errors;
  EXPECT_NE(takeFile(errors).find("builtin.module(mt-unroll"), std::string::npos) << errors;
}

TEST(Reproducer, IsNotMadeForAModelThatAPassRefuses) {
  EXPECT_EQ(errorsOf({"refuse", "", addFaulty<Fault::refuses>, takeAll}), "expected another model\n");
  EXPECT_EQ(errorsOf({"refuse", "", addFaulty<Fault::refusesAndBreaks>, takeAll}), "expected another model\n");
}
