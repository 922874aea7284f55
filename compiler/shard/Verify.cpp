// SPDX-License-Identifier: Apache-2.0
//
// Checks the output of the stage `shard`, independently of its passes.
#include "compiler/shard/Splits.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/MtDialect.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace mtc {
namespace {

constexpr int64_t maxBuckets = 1 << 20;

bool isSumOverShards(shard::AllReduceOp op) {
  return op.getGrid() == shardsGrid && op.getGridAxes() == ArrayRef<int16_t>{0} &&
         op.getReduction() == shard::ReductionKind::Sum;
}

// Whether the op concatenates sums over the batch, one per block of classes, which mt-bucket reduces as one value.
bool joinsSums(Operation *op) {
  return isa<mt::ConcatOp>(op) && mt::blocksOf(op) && llvm::all_of(op->getOperands(), [](Value part) {
           return part.getDefiningOp() && sumsOverBatch(part.getDefiningOp());
         });
}

LogicalResult verifyProgramAllReduces(mt::ProgramOp program) {
  for (Operation &op : program.getBody().front()) {
    if (auto allReduce = dyn_cast<shard::AllReduceOp>(op)) {
      if (!isSumOverShards(allReduce))
        return op.emitOpError("expected a sum on @") << shardsGrid << " grid_axes = [0], found another all-reduce";
      Operation *source = allReduce.getInput().getDefiningOp();
      if (!source || !(sumsOverBatch(source) || joinsSums(source)))
        return op.emitOpError("expected the result of a sum over the batch, found another value");
      continue;
    }
    if (!sumsOverBatch(&op))
      continue;
    for (Value part : op.getResults()) {
      auto users = part.getUsers();
      int64_t count = std::distance(users.begin(), users.end());
      int64_t reduces = llvm::count_if(users, [](Operation *user) {
        return isa<shard::AllReduceOp>(user) ||
               (joinsSums(user) && user->hasOneUse() && isa<shard::AllReduceOp>(*user->user_begin()));
      });
      if (reduces != 1 || (count != 1 && !isTableOfShards(&op)))
        return op.emitOpError("expected one use of a shard's sum over the batch, by an all-reduce, found ")
               << count << (count == 1 ? " use by another op" : " uses");
    }
  }
  return success();
}

LogicalResult verifyProgramBuckets(mt::ProgramOp program) {
  // For each op, one more than the last bucket on which its results depend; 0 if they depend on no bucket.
  llvm::DenseMap<Operation *, int64_t> ready;
  llvm::SmallVector<bool> used;
  for (Operation &op : program.getBody().front()) {
    int64_t needed = 0;
    for (Value operand : op.getOperands())
      needed = std::max(needed, ready.lookup(operand.getDefiningOp()));
    ready[&op] = needed;
    if (!isa<shard::AllReduceOp>(op))
      continue;
    std::optional<int64_t> bucket = mt::bucketOf(&op);
    if (!bucket)
      return op.emitOpError("expected an integer mt.bucket, found none");
    if (*bucket < 0 || *bucket >= maxBuckets)
      return op.emitOpError("expected mt.bucket to be from 0 to ") << maxBuckets - 1 << ", found " << *bucket;
    if (*bucket < needed)
      return op.emitOpError("expected a bucket of ") << needed << " or more, since it depends on a result of bucket "
                                                     << needed - 1 << ", found bucket " << *bucket;
    ready[&op] = *bucket + 1;
    used.resize(std::max<size_t>(used.size(), *bucket + 1), false);
    used[*bucket] = true;
  }
  for (auto [bucket, isUsed] : llvm::enumerate(used))
    if (!isUsed)
      return program.emitOpError("expected buckets 0 to ") << used.size() - 1 << ", found none numbered " << bucket;
  return success();
}

} // namespace

LogicalResult verifyAllReduces(ModuleOp module) {
  for (auto program : module.getOps<mt::ProgramOp>())
    if (failed(verifyProgramAllReduces(program)))
      return failure();
  return success();
}

LogicalResult verifyBuckets(ModuleOp module) {
  for (auto program : module.getOps<mt::ProgramOp>())
    if (failed(verifyProgramBuckets(program)))
      return failure();
  return success();
}

} // namespace mtc
