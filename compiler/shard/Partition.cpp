// SPDX-License-Identifier: Apache-2.0
//
// mt-partition: rewrites programs from the global batch to the view of one shard. Types do not change: `?` becomes the
// valid rows of the shard. A sum over a split axis becomes a partial sum of the shard, and an all-reduce adds the
// partial sums.
#include "compiler/Passes.h"
#include "compiler/shard/Splits.h"
#include "dialects/mt/MtDialect.h"

#include "mlir/IR/Builders.h"

namespace mtc {
#define GEN_PASS_DEF_PARTITION
#include "compiler/Passes.h.inc"

using namespace mlir;

namespace {

// Finds the ops whose result is a shard's partial sum, by the annotations. Fails if a value has none.
LogicalResult findPartialSums(mt::ProgramOp program, SmallVectorImpl<Operation *> &partial) {
  for (Operation &op : program.getBody().front()) {
    if (isa<shard::ShardOp, shard::ShardingOp>(op))
      continue;
    if (isa<shard::AllReduceOp>(op))
      return op.emitOpError("expected no all-reduce before mt-partition, found one");
    SmallVector<AxisSplits> operands;
    for (Value operand : op.getOperands()) {
      std::optional<AxisSplits> splits = splitsOfAnnotation(operand);
      if (!splits)
        return op.emitOpError("expected every value to be annotated by mt-propagate, found an operand that is not");
      operands.push_back(std::move(*splits));
    }
    auto sharded = dyn_cast<shard::ShardingInterface>(op);
    if (!sharded)
      continue;
    FailureOr<LoopSplits> loops = splitLoops(sharded, operands);
    if (failed(loops))
      return failure();
    if (loops->reduction)
      partial.push_back(&op);
  }
  return success();
}

void dropAnnotations(mt::ProgramOp program) {
  Block &body = program.getBody().front();
  for (auto annotation : llvm::make_early_inc_range(body.getOps<shard::ShardOp>())) {
    annotation.replaceAllUsesWith(annotation.getSrc());
    annotation.erase();
  }
  for (auto sharding : llvm::make_early_inc_range(body.getOps<shard::ShardingOp>()))
    sharding.erase();
}

struct Partition : impl::PartitionBase<Partition> {
  using PartitionBase::PartitionBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<mt::ProgramOp>()) {
      SmallVector<Operation *> partial;
      ownOf.clear();
      if (failed(findPartialSums(program, partial)))
        return signalPassFailure();
      dropAnnotations(program);
      for (Operation *op : partial)
        allReduce(op);
      for (auto gather : llvm::make_early_inc_range(program.getBody().front().getOps<mt::GatherOp>()))
        readOwnRows(gather);
    }
    if (failed(verifyAllReduces(getOperation())))
      signalPassFailure();
  }

private:
  void allReduce(Operation *op) {
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    for (Value part : op->getResults()) {
      auto sum = shard::AllReduceOp::create(builder, op->getLoc(), part, shardsGrid, ArrayRef<int16_t>{0},
                                            shard::ReductionKind::Sum);
      part.replaceAllUsesExcept(sum.getResult(), sum);
    }
  }

  // A gather that reads, for each sample, the row of its shard from a table of shards may read the table before the
  // all-reduce, because only sums over all shards need the all-reduce. Then no forward pass waits for other devices.
  void readOwnRows(mt::GatherOp gather) {
    if (Value own = ownRows(gather.getTable(), gather.getIds()))
      gather.getTableMutable().assign(own);
  }

  // The value that corresponds to `value` before the all-reduces, and equals it in the rows of a device's own shards:
  // `value` is computed row by row from tables of shards that were written by `ids`. Null if there is no such value.
  Value ownRows(Value value, Value ids) {
    if (auto reduce = value.getDefiningOp<shard::AllReduceOp>()) {
      auto table = reduce.getInput().getDefiningOp<mt::ScatterAddOp>();
      return table && isTableOfShards(table) && table.getIds() == ids ? reduce.getInput() : Value();
    }
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<mt::ElementwiseOpInterface>(op))
      return {};
    if (auto known = ownOf.find(value); known != ownOf.end())
      return known->second;
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      auto type = cast<RankedTensorType>(operand.getType()), all = cast<RankedTensorType>(value.getType());
      bool sameRows = type.getRank() == all.getRank() && type.getDimSize(0) == all.getDimSize(0);
      operands.push_back(sameRows ? ownRows(operand, ids) : Value());
    }
    Value result;
    if (llvm::any_of(operands, [](Value operand) { return operand != nullptr; })) {
      Operation *copy = OpBuilder(op).clone(*op);
      for (auto [i, operand] : llvm::enumerate(operands))
        if (operand)
          copy->setOperand(i, operand);
      result = copy->getResult(0);
    }
    return ownOf[value] = result;
  }

  llvm::DenseMap<Value, Value> ownOf; // cached results of ownRows
};

} // namespace
} // namespace mtc
