// SPDX-License-Identifier: Apache-2.0
//
// How the loops of an op are split among the shards. An op describes through ShardingInterface its loops, and which
// loop iterates over each axis of an operand; these functions know no op by name.
#pragma once

#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Shard/Interfaces/ShardingInterface.h"
#include "mlir/IR/BuiltinOps.h"

namespace mtc {

// Name of the grid, which has R shards along its axis 0.
inline constexpr llvm::StringLiteral shardsGrid = "shards";

// For each axis of a ranked tensor, whether it is split among the shards.
using AxisSplits = llvm::SmallVector<bool, 4>;

// The splits that a type implies: `?` is the batch axis, and the batch axis is split.
AxisSplits splitsOfType(mlir::Value value);

// The splits that a `shard.shard` states, whose result is `value`; nullopt if `value` is not the result of a
// shard.shard.
std::optional<AxisSplits> splitsOfAnnotation(mlir::Value value);

// Splits of the loops and results of one op.
struct LoopSplits {
  llvm::SmallVector<bool, 4> split;                    // per loop
  llvm::SmallVector<AxisSplits, 1> results;            // per result
  std::optional<mlir::shard::ReductionKind> reduction; // kind of the reduction over the split loop, if it is one
};

// Propagates the operands' splits (`operands[i]` for operand i) through the op's indexing maps. A loop that iterates
// over no axis of an operand is split if it iterates over a `?` of a result. Fails, with an error at the op, if
// operands disagree, if an axis that is split cannot be, if two loops would be split, or if a reduction other than a
// sum is over a split loop.
mlir::FailureOr<LoopSplits> splitLoops(mlir::shard::ShardingInterface op, llvm::ArrayRef<AxisSplits> operands);

// Whether an op sums over the batch axis of its operands, by their types alone. Does not emit the errors of splitLoops.
bool sumsOverBatch(mlir::Operation *op);

// Whether a sum over the batch is a table of shards (statistics of batch normalization, `--batch-norm local`): each
// sample adds to the row of its shard. So a device needs no other device for the rows of its own shards.
bool isTableOfShards(mlir::Operation *op);

// Checks that exactly one all-reduce follows every sum over the batch, and that there are no other all-reduces.
mlir::LogicalResult verifyAllReduces(mlir::ModuleOp module);

// Checks that every all-reduce has an `mt.bucket`, that the buckets of a program are numbered 0, 1, 2 ... without gaps,
// and that an all-reduce depends only on earlier buckets. Then the buckets can be issued in their order.
mlir::LogicalResult verifyBuckets(mlir::ModuleOp module);

} // namespace mtc
