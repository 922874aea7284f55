// SPDX-License-Identifier: Apache-2.0
#include "frontend/mlir/ReadModel.h"

#include "dialects/mt/Compilation.h"
#include "frontend/graph/GraphLayout.h"
#include "frontend/mlir/Extend.h"
#include "frontend/mlir/Limits.h"
#include "frontend/mlir/NameLayers.h"
#include "frontend/mlir/Prescan.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace mtc {

static constexpr llvm::StringRef openLength = "{length}";

// Replaces each {length} by the number, padded with spaces to the same width, so that columns in messages stay the
// same.
static std::string withLength(llvm::StringRef text, int64_t length) {
  std::string number = std::to_string(length), filled = text.str();
  number.resize(std::max(number.size(), openLength.size()), ' ');
  for (size_t at = 0; (at = filled.find(openLength, at)) != std::string::npos; at += number.size())
    filled.replace(at, openLength.size(), number);
  return filled;
}

// Whether a line starts a model in MLIR text, or a module of several models, or all lines are comments.
static bool mayBeModel(llvm::StringRef text) {
  for (const char *word : {"mt.", "\"mt.", "module", "builtin.module", "\"builtin.module"})
    if (beginsLine(text, word))
      return true;
  return llvm::all_of(llvm::split(text, '\n'), [](llvm::StringRef line) {
    line = line.ltrim();
    return line.empty() || line.starts_with("//");
  });
}

// Gives a model the numbers of its precision: f64, or no f64.
static LogicalResult setNumbers(ModuleOp module, bool isDouble) {
  bool says = mt::Compilation(module).isDouble();
  if (!isDouble && !says)
    return refuseDoubles(module);
  if (!says && module->hasAttr("graph.version"))
    return module.emitError() << "expected a trace of float64 for --precision f64, found one of float32: mtc.jax, and "
                                 "compile of mtc.torch, trace in float64 with precision=\"f64\"";
  return failure(failed(extend(module)) || failed(verify(module)));
}

OwningOpRef<ModuleOp> readModel(llvm::StringRef text, llvm::StringRef name, int64_t batch, MLIRContext &context,
                                DiagnosticLines &diagnostics, int64_t length, bool isDouble) {
  std::string filled;
  if (text.size() <= maxTextBytes && text.contains(openLength)) {
    if (!length) {
      diagnostics.addError(
          (name + ": error: expected the lengths of a model with " + openLength + ", as --lengths 64,128, found none")
              .str());
      return {};
    }
    filled = withLength(text, length);
    text = filled;
  }
  if (std::string problem = prescan(text, name, isDouble || text.contains("precision = f64")); !problem.empty()) {
    diagnostics.addError(problem);
    return {};
  }
  if (!mayBeModel(text)) {
    diagnostics.addError((name + ": error: expected a model: MLIR text with an mt.model, a file of Keras, ONNX or "
                                 "StableHLO; found none of these")
                             .str());
    return {};
  }
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, name), llvm::SMLoc());
  // Sizes are checked before any verifier computes with them.
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context, /*verifyAfterParse=*/false));
  if (!module || failed(checkLimits(*module, batch)) || failed(verify(*module)))
    return {};
  if (failed(setNumbers(*module, isDouble)))
    return {};
  if (hasGraph(*module) &&
      (failed(lowerGraph(*module)) || failed(checkLimits(*module, batch)) || failed(verify(*module))))
    return {};
  nameLayers(*module);
  return module;
}

} // namespace mtc
