// SPDX-License-Identifier: Apache-2.0
//
// The pass of the last stage.
#include "compiler/plan/Serialize.h"

#include "mlir/Pass/Pass.h"

namespace mtc {

using namespace mlir;

namespace {

struct WritePlan : PassWrapper<WritePlan, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(WritePlan)
  explicit WritePlan(Compilation &compilation) : compilation(&compilation) {}
  StringRef getName() const override { return "plan"; }

  void runOnOperation() override {
    FailureOr<std::vector<uint8_t>> plan = serializePlan(getOperation(), *compilation);
    if (failed(plan))
      return signalPassFailure();
    compilation->plan = std::move(*plan);
  }

  Compilation *compilation;
};

} // namespace

void buildPlan(OpPassManager &passes, Compilation &compilation) {
  passes.addPass(std::make_unique<WritePlan>(compilation));
}

} // namespace mtc
