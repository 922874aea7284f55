// SPDX-License-Identifier: Apache-2.0
#include "frontend/mlir/ReadModel.h"

#include "frontend/mlir/Limits.h"
#include "frontend/mlir/NameLayers.h"
#include "frontend/mlir/Prescan.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace mtc {

OwningOpRef<ModuleOp> readModel(llvm::StringRef text, llvm::StringRef name, int64_t batch, MLIRContext &context,
                                DiagnosticLines &diagnostics) {
  if (std::string problem = prescan(text, name); !problem.empty()) {
    diagnostics.addError(problem);
    return {};
  }
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, name), llvm::SMLoc());
  // Sizes are bounded before any verifier computes with them.
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context, /*verifyAfterParse=*/false));
  if (!module || failed(checkLimits(*module, batch)) || failed(verify(*module)))
    return {};
  nameLayers(*module);
  return module;
}

} // namespace mtc
