// SPDX-License-Identifier: Apache-2.0
//
// mt-block-losses: chooses the losses whose logits are never stored as a whole, and how many classes a block of them
// has (docs/ir.md, "Losses over many classes").
#include "compiler/Passes.h"
#include "compiler/differentiate/ClassLogits.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Types.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_BLOCKLOSSES
#include "compiler/Passes.h.inc"

namespace {

using mt::tensorOf;

// With more blocks there is less and less to gain, and each product is narrower.
constexpr int64_t mostBlocks = 16;
// Their numbers are exact as f32, by which the largest logit is found.
constexpr int64_t mostClasses = 1 << 24;
// A block of more classes has a multiple of them: the columns that a product's kernel packs at a time.
constexpr int64_t blockUnit = 64;

struct BlockLosses : impl::BlockLossesBase<BlockLosses> {
  using BlockLossesBase::BlockLossesBase;

  void runOnOperation() override {
    mt::Compilation compilation(getOperation());
    for (auto model : getOperation().getOps<mt::ModelOp>()) {
      int64_t sequence = 0;
      for (auto product : model.getBody().front().getOps<mt::MatmulOp>()) {
        Value logits = logitsOf(product);
        int64_t size = logits ? sizeOf(tensorOf(logits), compilation.getBatch()) : 0;
        SmallVector<Operation *> criteria = size ? criteriaOf(logits) : SmallVector<Operation *>();
        for (Operation *op : criteria)
          mt::setBlocks(op, {sequence, size});
        sequence += !criteria.empty();
      }
    }
  }

private:
  // Classes of a block; 0 where the logits of the whole batch are small. The size depends on nothing that a run
  // chooses, since the order of additions depends on it.
  int64_t sizeOf(RankedTensorType type, int64_t batch) {
    int64_t classes = type.getShape().back(), each = mt::elementsPerRow(type) * 4;
    int64_t blocks = std::min(static_cast<int64_t>(llvm::divideCeil(batch * each, blockBytes)), mostBlocks);
    int64_t size = llvm::divideCeil(classes, std::max<int64_t>(blocks, 1));
    if (size > blockUnit)
      size = llvm::alignTo(size, blockUnit);
    return size < classes && classes <= mostClasses ? size : 0;
  }
};

} // namespace
} // namespace mtc
