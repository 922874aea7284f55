// SPDX-License-Identifier: Apache-2.0
//
// mt-bucket: groups a program's all-reduces and fixes the one order in which they are issued.
//
// An all-reduce that others wait for (a divisor, a statistic) goes as early as its waiters demand and no earlier; one
// that nothing waits for (gradients, losses, metrics) goes into the last bucket. So there are as many buckets as the
// longest chain of all-reduces has links, which is the fewest possible; members of one bucket never depend on each
// other. A last bucket of more bytes than the limit is cut into several, in the order in which the backward pass
// finishes its members: all but the last can run concurrently with what follows. Each element is added along its own
// tree, so the bits are those of one bucket.
#include "compiler/Passes.h"
#include "compiler/shard/Splits.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/MtDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

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
  // Parts of one sum, each of its own block of classes, leave as one: a concatenation of sums is the sum of a
  // concatenation, element by element.
  void joinParts(mt::ProgramOp program) {
    for (auto concat : program.getBody().front().getOps<mt::ConcatOp>()) {
      auto isPart = [](Value value) { return value.getDefiningOp<shard::AllReduceOp>() && value.hasOneUse(); };
      if (!mt::blocksOf(concat) || !llvm::all_of(concat.getOperands(), isPart))
        continue;
      OpBuilder builder(concat->getContext());
      builder.setInsertionPointAfter(concat);
      SmallVector<shard::AllReduceOp> parts;
      for (Value operand : concat.getOperands())
        parts.push_back(operand.getDefiningOp<shard::AllReduceOp>());
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

  void assignBuckets(mt::ProgramOp program) {
    // For each op, the links of the longest chain of all-reduces that wait for its results.
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
  }
};

} // namespace
} // namespace mtc
