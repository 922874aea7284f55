// SPDX-License-Identifier: Apache-2.0
//
// mt-annotate: adds the grid of shards, and annotates inputs and targets as split along the batch axis and variables as
// replicated.
#include "compiler/Passes.h"
#include "compiler/shard/Splits.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/MtDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

namespace mtc {
#define GEN_PASS_DEF_ANNOTATE
#include "compiler/Passes.h.inc"

using namespace mlir;

namespace {

struct Annotate : impl::AnnotateBase<Annotate> {
  using AnnotateBase::AnnotateBase;

  void runOnOperation() override {
    FailureOr<int64_t> count = shardCount();
    if (failed(count))
      return signalPassFailure();
    if (Operation *existing = getOperation().lookupSymbol(shardsGrid)) {
      existing->emitOpError("expected a module without @") << shardsGrid << ", found this one";
      return signalPassFailure();
    }
    auto builder = OpBuilder::atBlockBegin(getOperation().getBody());
    shard::GridOp::create(builder, getOperation().getLoc(), shardsGrid, ArrayRef<int64_t>{*count});
    for (auto program : getOperation().getOps<mt::ProgramOp>())
      annotate(program);
  }

private:
  // The number of shards R, from the option or the module's attribute.
  FailureOr<int64_t> shardCount() {
    int64_t count = shards;
    if (count == 0) {
      std::optional<int64_t> found = mt::Compilation(getOperation()).findShards();
      if (!found)
        return getOperation().emitError("expected `shards` in the module's `mt.compilation`, found none");
      count = *found;
    }
    if (count < 1 || !llvm::isPowerOf2_64(count))
      return getOperation().emitError("expected the number of shards to be a power of two, found ") << count;
    return count;
  }

  void annotate(mt::ProgramOp program) {
    Block &body = program.getBody().front();
    SmallVector<std::pair<Value, bool>> annotated;
    for (Operation &op : body)
      if (isa<mt::InputOp, mt::TargetOp, mt::SampleWeightOp, mt::ReadOp>(op))
        annotated.push_back({op.getResult(0), !isa<mt::ReadOp>(op)});
    if (annotated.empty())
      return;
    auto builder = OpBuilder::atBlockBegin(&body);
    auto sharding = [&](ArrayRef<int16_t> batchAxis) -> Value {
      auto axes = DenseI16ArrayAttr::get(&getContext(), batchAxis);
      return shard::ShardingOp::create(builder, program.getLoc(), shardsGrid, ArrayRef(axes));
    };
    Value split = sharding({0}), replicated = sharding({});
    for (auto [value, isSplit] : annotated) {
      builder.setInsertionPointAfterValue(value);
      auto annotation = shard::ShardOp::create(builder, value.getLoc(), value, isSplit ? split : replicated);
      value.replaceAllUsesExcept(annotation.getResult(), annotation);
    }
  }
};

} // namespace
} // namespace mtc
