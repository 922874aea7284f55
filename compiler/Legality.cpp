// SPDX-License-Identifier: Apache-2.0
#include "compiler/Legality.h"
#include "compiler/shard/Splits.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

using namespace mlir;

namespace mtc {

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

// Checks that `allowed` holds for every op in the bodies of the module's `Body` ops.
template <typename Body>
static LogicalResult checkBodies(ModuleOp module, StringRef stage, llvm::function_ref<bool(Operation &)> allowed) {
  for (auto body : module.getOps<Body>())
    for (Operation &op : body.getBody().front())
      if (!allowed(op))
        return op.emitOpError("expected no such op in a program after the stage ") << stage << ", found one";
  return success();
}

static LogicalResult checkTop(ModuleOp module, StringRef stage, llvm::function_ref<bool(Operation &)> allowed) {
  for (Operation &op : *module.getBody())
    if (!allowed(op))
      return op.emitOpError("expected no such op at the top of the module after the stage ") << stage << ", found one";
  return success();
}

static bool isSignature(Operation &op) {
  return op.hasTrait<mt::Reports>() ||
         isa<mt::InputOp, mt::TargetOp, mt::SampleWeightOp, mt::OutputOp, mt::ReadOp, mt::AssignOp>(op);
}

static bool isPrimitive(Operation &op) { return isa<mt::CostOpInterface>(op) && !isa<mt::DecomposeOpInterface>(op); }

LogicalResult checkDifferentiate(ModuleOp module) {
  if (failed(checkTop(module, "differentiate", [](Operation &op) { return isa<mt::DeclareOp, mt::ProgramOp>(op); })))
    return failure();
  return checkBodies<mt::ProgramOp>(module, "differentiate",
                                    [](Operation &op) { return isSignature(op) || isPrimitive(op); });
}

LogicalResult checkShard(ModuleOp module) {
  if (failed(checkTop(module, "shard",
                      [](Operation &op) { return isa<mt::DeclareOp, mt::ProgramOp, shard::GridOp>(op); })))
    return failure();
  if (failed(checkBodies<mt::ProgramOp>(module, "shard", [](Operation &op) {
        return isSignature(op) || isPrimitive(op) || isa<shard::AllReduceOp>(op);
      })))
    return failure();
  return success(succeeded(verifyAllReduces(module)) && succeeded(verifyBuckets(module)));
}

// Whether a variable may take the value: an elementwise kernel writes it in place, and a kernel of scalars copies it.
static bool mayBeAssigned(Value value) {
  auto kernel = value.getDefiningOp<mt::KernelOp>();
  if (!kernel || kernel.getKind() == mt::KernelKind::elementwise)
    return static_cast<bool>(kernel);
  unsigned number = cast<OpResult>(value).getResultNumber();
  return kernel.getKind() == mt::KernelKind::single &&
         isa<BlockArgument>(kernel.getBody().front().getTerminator()->getOperand(number));
}

LogicalResult checkFuse(ModuleOp module) {
  if (failed(checkBodies<mt::ProgramOp>(module, "fuse", [](Operation &op) {
        return isSignature(op) || isa<mt::KernelOp, mt::ConstantOp, shard::AllReduceOp>(op);
      })))
    return failure();
  for (auto program : module.getOps<mt::ProgramOp>())
    for (auto assign : program.getBody().front().getOps<mt::AssignOp>())
      if (!mayBeAssigned(assign.getValue()))
        return assign.emitOpError("expected an elementwise kernel's result or a copy after fuse, found another value");
  return success();
}

LogicalResult checkSchedule(ModuleOp module) {
  if (failed(checkFuse(module)))
    return failure();
  for (auto program : module.getOps<mt::ProgramOp>())
    for (auto kernel : program.getBody().front().getOps<mt::KernelOp>())
      if (!kernel.getWait())
        return kernel.emitOpError("expected `wait` after schedule, found none");
  return success();
}

LogicalResult checkAllocate(ModuleOp module) {
  if (failed(checkTop(module, "allocate",
                      [](Operation &op) { return isa<plan::VariableOp, plan::KernelOp, plan::ProgramOp>(op); })))
    return failure();
  return checkBodies<plan::ProgramOp>(module, "allocate", [](Operation &op) {
    return isa<plan::SignatureOp, plan::BufferOp, plan::LaunchOp, plan::AllReduceOp, plan::ResultOp, plan::RateOp>(op);
  });
}

LogicalResult checkCodegen(ModuleOp module) {
  for (auto kernel : module.getOps<plan::KernelOp>())
    if (!kernel.getInnerTiles() && !kernel.getElementsPerTile())
      return kernel.emitOpError("expected a grid after codegen, found none");
  return checkAllocate(module);
}

} // namespace mtc
