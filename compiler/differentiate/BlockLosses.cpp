// SPDX-License-Identifier: Apache-2.0
//
// mt-block-losses: chooses the losses whose logits are never stored as a whole, and how many classes a block of them
// has (docs/ir.md, "Losses over many classes").
#include "compiler/Passes.h"
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

// The logits that a product with a matrix of weights makes: its result, or that with a bias added.
Value logitsOf(mt::MatmulOp product) {
  RankedTensorType type = tensorOf(product.getResult());
  if (product.getTransposeA() || !mt::isSplit(type) || tensorOf(product.getRhs()).getRank() != 2 ||
      !product.getRhs().getDefiningOp<mt::VariableOp>())
    return {};
  auto add = product->hasOneUse() ? dyn_cast<mt::AddOp>(*product->user_begin()) : mt::AddOp();
  if (!add || add.getType() != type)
    return product.getResult();
  Value bias = add.getLhs() == product.getResult() ? add.getRhs() : add.getLhs();
  bool fits = tensorOf(bias).getShape() == ArrayRef<int64_t>{type.getShape().back()} &&
              bias.getDefiningOp<mt::VariableOp>();
  return fits ? add.getResult() : Value();
}

// Targets that are labels or the caller's own: none that gradients go through.
bool areGiven(Value targets) { return isa_and_nonnull<mt::TargetOp, mt::OneHotOp>(targets.getDefiningOp()); }

bool isLossOf(Operation *op, Value logits) {
  if (auto sparse = dyn_cast<mt::SparseCategoricalCrossentropyOp>(op))
    return sparse.getFromLogits() && sparse.getPredictions() == logits;
  auto dense = dyn_cast<mt::CategoricalCrossentropyOp>(op);
  return dense && dense.getFromLogits() && dense.getPredictions() == logits && areGiven(dense.getTargets());
}

// The criteria that read logits by blocks, in program order; none where something else reads them in train_step too.
SmallVector<Operation *> criteriaOf(Value logits) {
  SmallVector<Operation *> criteria;
  bool loss = false;
  for (Operation *user : logits.getUsers()) {
    if (isa<mt::OutputOp>(user)) // only in predict
      continue;
    bool isLoss = isLossOf(user, logits);
    if (!isLoss && !isa<mt::SparseCategoricalAccuracyOp>(user))
      return {};
    loss |= isLoss;
    criteria.push_back(user);
  }
  llvm::sort(criteria, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return loss ? criteria : SmallVector<Operation *>();
}

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
