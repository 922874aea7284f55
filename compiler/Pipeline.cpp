// SPDX-License-Identifier: Apache-2.0
#include "compiler/Pipeline.h"
#include "compiler/Passes.h"

#include "mlir/Dialect/Shard/IR/ShardDialect.h"

using namespace mlir;

namespace mtc {
namespace {

// import: text became a module that holds one model and nothing else.
void buildImport(OpPassManager &, Compilation &) {}

LogicalResult checkImport(ModuleOp module) {
  mt::ModelOp model;
  for (Operation &op : *module.getBody()) {
    auto next = dyn_cast<mt::ModelOp>(op);
    if (!next)
      return op.emitError("expected only an mt.model at the top, found '") << op.getName() << "'";
    if (model)
      return next.emitError("expected one mt.model in a file, found a second").attachNote(model.getLoc())
             << "the first is here";
    model = next;
  }
  if (!model)
    return module.emitError("expected an mt.model, found none");
  return success();
}

constexpr Stage table[] = {
    {"import", "read the file: one mt.model", buildImport, checkImport},
};

} // namespace

llvm::ArrayRef<Stage> stages() { return table; }

LogicalResult runStage(const Stage &stage, ModuleOp module, Compilation &compilation) {
  PassManager passes(module.getContext(), ModuleOp::getOperationName(), OpPassManager::Nesting::Explicit);
  stage.build(passes, compilation);
  if (failed(passes.run(module)))
    return failure();
  return stage.check(module);
}

void registerDialects(DialectRegistry &registry) {
  registry.insert<mt::MtDialect, plan::PlanDialect, shard::ShardDialect>();
}

} // namespace mtc
