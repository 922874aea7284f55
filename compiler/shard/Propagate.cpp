// SPDX-License-Identifier: Apache-2.0
//
// mt-propagate: annotates every value, from the annotations of inputs and variables and the loops of the ops.
#include "compiler/Passes.h"
#include "compiler/shard/Splits.h"
#include "dialects/mt/MtDialect.h"

#include "mlir/IR/Builders.h"

namespace mtc {
#define GEN_PASS_DEF_PROPAGATE
#include "compiler/Passes.h.inc"

using namespace mlir;

namespace {

const char *word(bool split) { return split ? "split" : "replicated"; }

// Checks that the annotation splits a `?` axis and no other axis.
LogicalResult checkAgainstType(Operation *op, Value value, ArrayRef<bool> splits) {
  AxisSplits expected = splitsOfType(value);
  for (size_t axis = 0; axis < expected.size(); ++axis)
    if (splits[axis] != expected[axis])
      return op->emitOpError("expected axis ") << axis << " of " << value.getType() << " to be " << word(expected[axis])
                                               << ", found it " << word(splits[axis]);
  return success();
}

class Propagation {
public:
  explicit Propagation(mt::ProgramOp program) : program(program), builder(program.getContext()) {}

  LogicalResult run() {
    for (Operation &op : llvm::make_early_inc_range(program.getBody().front()))
      if (failed(visit(&op)))
        return failure();
    return success();
  }

private:
  LogicalResult visit(Operation *op) {
    if (auto annotation = dyn_cast<shard::ShardOp>(op))
      return visitAnnotation(annotation);
    if (isa<shard::ShardingOp>(op))
      return success();
    SmallVector<AxisSplits> operands;
    for (Value operand : op->getOperands()) {
      std::optional<AxisSplits> splits = splitsOfAnnotation(operand);
      if (!splits)
        return op->emitOpError("expected annotated operands, found one without");
      operands.push_back(std::move(*splits));
    }
    if (auto sharded = dyn_cast<shard::ShardingInterface>(op))
      return visitComputation(sharded, operands);
    for (Value result : op->getResults())
      if (!result.hasOneUse() || !isa<shard::ShardOp>(*result.user_begin()))
        return op->emitOpError("expected a result that is annotated, or loops to find its sharding by, found neither");
    return success();
  }

  // Handles an annotation that is in the input. A second annotation of a value must equal the first, and is removed.
  LogicalResult visitAnnotation(shard::ShardOp annotation) {
    std::optional<AxisSplits> splits = splitsOfAnnotation(annotation.getResult());
    if (!splits)
      return annotation.emitOpError("expected a sharding from shard.sharding, found another value");
    if (failed(checkAgainstType(annotation, annotation.getResult(), *splits)))
      return failure();
    if (splitsOfAnnotation(annotation.getSrc())) {
      annotation.replaceAllUsesWith(annotation.getSrc());
      annotation.erase();
    }
    return success();
  }

  LogicalResult visitComputation(shard::ShardingInterface op, ArrayRef<AxisSplits> operands) {
    FailureOr<LoopSplits> loops = splitLoops(op, operands);
    if (failed(loops))
      return failure();
    for (OpResult result : op->getResults()) {
      const AxisSplits &splits = loops->results[result.getResultNumber()];
      if (failed(checkAgainstType(op, result, splits)))
        return failure();
      annotate(result, llvm::is_contained(splits, true));
    }
    return success();
  }

  void annotate(OpResult value, bool split) {
    Value sharding = shardingFor(split);
    builder.setInsertionPointAfterValue(value);
    auto annotation = shard::ShardOp::create(builder, value.getLoc(), value, sharding);
    value.replaceAllUsesExcept(annotation.getResult(), annotation);
  }

  // Each program has one shard.sharding of each kind, which mt-annotate or this function creates.
  Value shardingFor(bool split) {
    Value &known = split ? splitSharding : replicatedSharding;
    if (known)
      return known;
    for (auto op : program.getBody().front().getOps<shard::ShardingOp>()) {
      auto axes = op.getSplitAxes();
      bool isSplit = axes.size() > 0 && !(*axes.begin()).empty();
      if (axes.size() <= 1 && isSplit == split)
        return known = op;
    }
    builder.setInsertionPointToStart(&program.getBody().front());
    auto axes = DenseI16ArrayAttr::get(program.getContext(), split ? ArrayRef<int16_t>{0} : ArrayRef<int16_t>{});
    return known = shard::ShardingOp::create(builder, program.getLoc(), shardsGrid, ArrayRef(axes));
  }

  mt::ProgramOp program;
  OpBuilder builder;
  Value splitSharding, replicatedSharding;
};

struct Propagate : impl::PropagateBase<Propagate> {
  using PropagateBase::PropagateBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<mt::ProgramOp>())
      if (failed(Propagation(program).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace mtc
