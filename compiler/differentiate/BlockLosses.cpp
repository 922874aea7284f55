// SPDX-License-Identifier: Apache-2.0
//
// mt-block-losses: chooses the losses whose logits are never stored whole, and the number of classes of a block
// (docs/ir.md, "Losses over many classes").
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

// Indices of classes up to this number are exact in f32, in which the index of the largest logit is computed.
constexpr int64_t mostClasses = 1 << 24;
// The number of classes of a larger block is a multiple of this number: a product's kernel packs as many columns at a
// time.
constexpr int64_t blockUnit = 64;
// Products of blocks of fewer classes would leave most of a GPU idle.
constexpr int64_t fewestGpuClasses = 256;

struct BlockLosses : impl::BlockLossesBase<BlockLosses> {
  using BlockLossesBase::BlockLossesBase;

  void runOnOperation() override {
    mt::Compilation compilation(getOperation());
    int64_t most = blockBytes;
    if (blocks > 1)
      forLogits([&, largest = int64_t(0)](Value logits, ArrayRef<Operation *>) mutable {
        largest = std::max(largest, bytesOf(logits, compilation));
        most = std::min<int64_t>(blockBytes, llvm::divideCeil(largest, blocks));
      });
    mt::ModelOp current;
    int64_t sequence = 0;
    forLogits([&](Value logits, ArrayRef<Operation *> criteria) {
      auto model = criteria.front()->getParentOfType<mt::ModelOp>();
      sequence = model == current ? sequence : 0;
      current = model;
      int64_t size = sizeOf(logits, compilation, most);
      for (Operation *op : criteria)
        if (size)
          mt::setBlocks(op, {sequence, size});
      sequence += size > 0;
    });
  }

private:
  // Calls `body` for all logits that only losses and accuracies read.
  void forLogits(llvm::function_ref<void(Value, ArrayRef<Operation *>)> body) {
    for (auto model : getOperation().getOps<mt::ModelOp>()) {
      if (!model.getBody().front().getOps<mt::DerivativeOp>().empty())
        continue;
      forLogitsIn(model.getBody().front(), body);
      if (mt::UpdateOp update = model.findUpdate(); update && !mayDifferentiateTwice(update))
        forLogitsIn(update.getBody().front(), body);
    }
  }
  static void forLogitsIn(Block &block, llvm::function_ref<void(Value, ArrayRef<Operation *>)> body) {
    for (auto product : block.getOps<mt::MatmulOp>())
      if (Value logits = logitsOf(product))
        if (SmallVector<Operation *> criteria = criteriaOf(logits); !criteria.empty())
          body(logits, criteria);
  }
  // mt-block-logits knows the backward pass of a loss, but not the derivatives of that.
  static bool mayDifferentiateTwice(mt::UpdateOp update) {
    llvm::SmallDenseSet<Value> losses;
    for (auto derivative : update.getBody().front().getOps<mt::DerivativeOp>())
      losses.insert(derivative.getLoss());
    return losses.size() > 1;
  }

  // Bytes of the logits of the whole batch.
  int64_t bytesOf(Value logits, const mt::Compilation &compilation) {
    return compilation.getBatch() * mt::elementsPerRow(tensorOf(logits)) * (gpus && compilation.isHalf() ? 2 : 4);
  }

  // Number of classes of a block; 0 if the logits of the whole batch are small. The number must not depend on choices
  // of a run, because the order of additions depends on it.
  int64_t sizeOf(Value logits, const mt::Compilation &compilation, int64_t most) {
    int64_t classes = tensorOf(logits).getShape().back();
    int64_t count = std::min<int64_t>(llvm::divideCeil(bytesOf(logits, compilation), most), mt::mostBlocks);
    int64_t size = llvm::divideCeil(classes, std::max<int64_t>(count, 1));
    if (size > blockUnit)
      size = llvm::alignTo(size, blockUnit);
    return size < classes && classes <= mostClasses && (!gpus || classes >= fewestGpuClasses) ? size : 0;
  }
};

} // namespace
} // namespace mtc
