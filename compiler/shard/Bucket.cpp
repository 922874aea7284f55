// SPDX-License-Identifier: Apache-2.0
//
// mt-bucket: groups the all-reduces of a program into buckets, and fixes the order of the buckets.
//
// An all-reduce on which another all-reduce depends (a divisor, a statistic) goes into the latest bucket that the
// dependency allows. All other all-reduces (gradients, losses, metrics) go into the last bucket. So the number of
// buckets is the length of the longest chain of dependent all-reduces, which is minimal, and all-reduces of one bucket
// never depend on each other. An all-reduce goes into an earlier bucket if a sum in that bucket adds up the same
// values. An example is the gradient of the sum of two batch normalizations, as in a residual block. A kernel that
// reads both sums can then read the values once. If the last bucket has more bytes than the limit, it is cut into
// several, in the order in which the backward pass computes its members, so that all but the last of them can overlap
// with the backward pass. Each element is added along a tree of its own, so the bits do not depend on the buckets.
#include "compiler/Passes.h"
#include "compiler/shard/Splits.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/MtDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace mtc {
#define GEN_PASS_DEF_BUCKET
#include "compiler/Passes.h.inc"

using namespace mlir;

namespace {

struct Bucket : impl::BucketBase<Bucket> {
  using BucketBase::BucketBase;

  void runOnOperation() override {
    if (failed(verifyAllReduces(getOperation())))
      return signalPassFailure();
    for (auto program : getOperation().getOps<mt::ProgramOp>()) {
      joinParts(program);
      assignBuckets(program);
    }
    if (failed(verifyBuckets(getOperation())))
      signalPassFailure();
  }

private:
  // Replaces the all-reduces of the parts of a concatenation, one part per block of classes, by one all-reduce of the
  // concatenation. The sums are the same element by element. The concatenation moves to the last of its parts: the
  // gradient of a table that is also the embedding's is complete at the beginning of the backward pass, but used at
  // its end.
  void joinParts(mt::ProgramOp program) {
    for (auto concat : llvm::make_early_inc_range(program.getBody().front().getOps<mt::ConcatOp>())) {
      auto isPart = [](Value value) { return value.getDefiningOp<shard::AllReduceOp>() && value.hasOneUse(); };
      if (!mt::blocksOf(concat) || !llvm::all_of(concat.getOperands(), isPart))
        continue;
      SmallVector<shard::AllReduceOp> parts;
      for (Value operand : concat.getOperands())
        parts.push_back(operand.getDefiningOp<shard::AllReduceOp>());
      auto isBefore = [](shard::AllReduceOp a, shard::AllReduceOp b) { return a->isBeforeInBlock(b); };
      concat->moveAfter(*std::max_element(parts.begin(), parts.end(), isBefore));
      OpBuilder builder(concat->getContext());
      builder.setInsertionPointAfter(concat);
      auto whole = cast<shard::AllReduceOp>(builder.clone(*parts.front()));
      whole.getInputMutable().assign(concat.getResult());
      whole.getResult().setType(concat.getType());
      concat.getResult().replaceAllUsesExcept(whole.getResult(), whole);
      for (auto [i, part] : llvm::enumerate(parts)) {
        concat->setOperand(i, part.getInput());
        part.erase();
      }
    }
  }

  // Returns the last op whose result has a batch axis and from which an all-reduced sum is computed element by element.
  static Operation *lastSummed(shard::AllReduceOp reduce) {
    llvm::SetVector<Operation *> ops;
    Operation *last = nullptr;
    auto add = [&](Value value) {
      if (Operation *from = value.getDefiningOp(); from && mt::isSplit(value.getType()))
        ops.insert(from);
    };
    auto isComputed = [](Operation *op) { return isa<mt::ElementwiseOpInterface, mt::ReduceOp>(op); };
    if (Operation *sum = reduce.getInput().getDefiningOp(); sum && isComputed(sum))
      llvm::for_each(sum->getOperands(), add);
    for (size_t i = 0; i < ops.size(); ++i)
      if (last && ops[i]->isBeforeInBlock(last)) // and so are its operands
        continue;
      else if (isComputed(ops[i]))
        llvm::for_each(ops[i]->getOperands(), add);
      else
        last = ops[i];
    return last;
  }

  // Moves all-reduces of the buckets before `last` to the earliest bucket that has a sum of the same values and is
  // after all buckets on which they depend.
  void joinSums(mt::ProgramOp program, int64_t last) {
    llvm::DenseMap<Operation *, SmallVector<int64_t, 2>> bucketsOf; // of the sums of a value
    llvm::DenseMap<Operation *, Operation *> summed;
    for (auto op : program.getBody().front().getOps<shard::AllReduceOp>())
      if (Operation *value = *mt::bucketOf(op) < last ? lastSummed(op) : nullptr) {
        summed[op] = value;
        bucketsOf[value].push_back(*mt::bucketOf(op));
      }
    llvm::DenseMap<Operation *, int64_t> first; // the first bucket in which an op's results are known
    for (Operation &op : program.getBody().front()) {
      int64_t own = 0;
      for (Value operand : op.getOperands())
        if (Operation *from = operand.getDefiningOp())
          own = std::max(own, first.lookup(from));
      if (Operation *value = summed.lookup(&op))
        for (int64_t bucket : bucketsOf.lookup(value))
          if (bucket >= own && bucket < *mt::bucketOf(&op))
            mt::setBucket(&op, bucket);
      if (isa<shard::AllReduceOp>(op))
        own = *mt::bucketOf(&op) + 1;
      first[&op] = own;
    }
  }

  void assignBuckets(mt::ProgramOp program) {
    // For each op, the number of all-reduces on the longest chain that depends on its results.
    llvm::DenseMap<Operation *, int64_t> waiters;
    int64_t longest = 0;
    for (Operation &op : llvm::reverse(program.getBody().front())) {
      int64_t chain = 0;
      for (Operation *user : op.getUsers())
        chain = std::max(chain, waiters.lookup(user) + isa<shard::AllReduceOp>(user));
      waiters[&op] = chain;
      if (isa<shard::AllReduceOp>(op))
        longest = std::max(longest, chain);
    }
    int64_t bytes = 0, cuts = 0;
    for (auto op : program.getBody().front().getOps<shard::AllReduceOp>()) {
      int64_t chain = waiters.lookup(op);
      if (chain == 0) {
        auto type = cast<RankedTensorType>(op.getInput().getType());
        int64_t more = llvm::divideCeil(type.getNumElements() * type.getElementTypeBitWidth(), 8);
        if (bytes > 0 && bytes + more > bucketBytes) {
          ++cuts;
          bytes = 0;
        }
        bytes += more;
      }
      mt::setBucket(op, longest - chain + (chain == 0 ? cuts : 0));
    }
    joinSums(program, longest);
  }
};

} // namespace
} // namespace mtc
