// SPDX-License-Identifier: Apache-2.0
//
// How an op's loops are split among the shards: what the passes of the shard stage share. An op says through
// ShardingInterface which loops it has and which axis of which operand each loop walks; nothing here knows a single op.
#pragma once

#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Shard/Interfaces/ShardingInterface.h"
#include "mlir/IR/BuiltinOps.h"

namespace mtc {

// The one grid, of R shards along its axis 0.
inline constexpr llvm::StringLiteral shardsGrid = "shards";

// For each axis of a ranked tensor: is it split among the shards?
using AxisSplits = llvm::SmallVector<bool, 4>;

// What the type says: `?` is the batch axis, and the batch axis is split.
AxisSplits splitsOfType(mlir::Value value);

// What a value's own `shard.shard` says: `value` is that op's result. nullopt: it has none.
std::optional<AxisSplits> splitsOfAnnotation(mlir::Value value);

// The loops of one op.
struct LoopSplits {
  llvm::SmallVector<bool, 4> split;                    // for each loop
  llvm::SmallVector<AxisSplits, 1> results;            // for each result
  std::optional<mlir::shard::ReductionKind> reduction; // of the loop that is split and summed, if there is one
};

// Follows the operands' splits (`operands[i]` for operand i) through the op's indexing maps. A loop that no operand
// walks is split where it makes a `?` of a result. Fails, with an error at the op, where operands disagree, where a
// split axis cannot be split, where two loops would be, or where a reduction that is not a sum crosses the split.
mlir::FailureOr<LoopSplits> splitLoops(mlir::shard::ShardingInterface op, llvm::ArrayRef<AxisSplits> operands);

// True for an op that sums over the batch axis of its operands, by their types alone. Errors of splitLoops are not
// repeated.
bool sumsOverBatch(mlir::Operation *op);

// Whether each row of a sum over the batch is one shard's own, so that a device needs no other for those of its shards:
// a table of shards (statistics of batch normalisation, `--batch-norm local`) to which each sample adds at its shard's
// row.
bool isTableOfShards(mlir::Operation *op);

// Succeeds if every sum over the batch is followed by exactly one all-reduce and there are no others.
mlir::LogicalResult verifyAllReduces(mlir::ModuleOp module);

// Succeeds if every all-reduce has an `mt.bucket`, the buckets of a program are 0, 1, 2 ... without gaps, and an
// all-reduce depends only on results of earlier buckets: then issuing bucket after bucket is possible and one total
// order.
mlir::LogicalResult verifyBuckets(mlir::ModuleOp module);

} // namespace mtc
