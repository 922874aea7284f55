// SPDX-License-Identifier: Apache-2.0
//
// Products of blocks of classes (docs/ir.md, "Losses over many classes"): each product reads its part of the matrix in
// place, and each weight gradient is written to its part of one value, in the turn of the block.
#include "compiler/fuse/FusionGraph.h"
#include "compiler/fuse/Prepare.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/KernelKinds.h"

namespace mtc {

using namespace mlir;
using mt::KernelKind;

// The product of a block that a sum over the batch adds; null for any other value.
static mt::MatmulOp blockProduct(Value sum) {
  while (auto reduce = sum.getDefiningOp<mt::ReduceOp>())
    sum = reduce.getOperand();
  auto product = sum.getDefiningOp<mt::MatmulOp>();
  return product && product.getTransposeA() && mt::turnOf(product) ? product : mt::MatmulOp();
}

// Replaces a concatenation of weight gradients by a value of zeros into which the parts are written one after the
// other.
static void placeParts(mt::ConcatOp concat) {
  auto type = cast<RankedTensorType>(concat.getType());
  struct Part {
    Value value;
    int64_t from, turn;
  };
  SmallVector<Part> parts;
  int64_t end = 0, axis = concat.getDim();
  for (Value operand : concat.getOperands()) {
    mt::MatmulOp product = blockProduct(operand);
    if (!product || !operand.hasOneUse())
      return;
    parts.push_back({operand, end, mt::turnOf(product)->number});
    end += cast<RankedTensorType>(operand.getType()).getDimSize(axis);
  }
  llvm::sort(parts, [](const Part &a, const Part &b) { return a.turn < b.turn; });
  OpBuilder builder(concat);
  auto zero = mt::ConstantOp::create(builder, concat.getLoc(), type,
                                     DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), 0)));
  // an op and not a constant, because constants have no buffer
  Value whole = mt::AddOp::create(builder, concat.getLoc(), zero, zero);
  for (const Part &part : parts)
    whole = mt::placePart(builder, concat.getLoc(), {part.value, whole, axis, part.from});
  concat.replaceAllUsesWith(whole);
  concat.erase();
}

// Gives each product a slice of its own, so that the slice can become part of the product's kernel.
static void takeOwnSlices(mt::MatmulOp product) {
  OpBuilder builder(product);
  for (OpOperand &side : product->getOpOperands())
    if (mt::holderOf(side.get()) != side.get() && !side.get().hasOneUse())
      side.set(builder.clone(*side.get().getDefiningOp())->getResult(0));
}

void prepareBlocks(mt::ProgramOp program) {
  Block &body = program.getBody().front();
  for (auto product : body.getOps<mt::MatmulOp>())
    if (mt::turnOf(product) && product.getTransposeA())
      takeOwnSlices(product);
  for (auto product : body.getOps<mt::MatmulOp>())
    if (mt::SliceOp slice = mt::turnOf(product) ? mt::slicedSide(product) : mt::SliceOp();
        slice && !slice->hasOneUse()) {
      OpBuilder builder(product);
      product.getRhsMutable().assign(builder.clone(*slice)->getResult(0));
    }
  for (auto concat : llvm::make_early_inc_range(body.getOps<mt::ConcatOp>()))
    if (mt::blocksOf(concat) && !mt::isSplit(concat.getType()))
      placeParts(concat);
}

// Merges slices with the products that read them in place, and the writing of a part with the product that computes the
// part.
void FusionGraph::mergeBlocks() {
  for (Operation &op : *body) {
    if (std::optional<mt::Turn> turn = mt::turnOf(&op))
      turns[*turn].push_back(&op);
    auto product = dyn_cast<mt::MatmulOp>(op);
    if (product && mt::turnOf(product))
      if (mt::SliceOp slice = mt::slicedSide(product))
        join(*groupOf(product), *groupOf(slice));
    if (product && groups[*groupOf(product)].kind == KernelKind::matmul_wgrad)
      for (Value side : product->getOperands())
        if (mt::holderOf(side) != side && side.hasOneUse())
          join(*groupOf(product), *producer(side));
    std::optional<mt::PlacedPart> placed = op.getNumResults() == 1 ? mt::placedPartOf(op.getResult(0)) : std::nullopt;
    if (!placed)
      continue;
    unsigned group = *producer(placed->part);
    for (Value operand : op.getOperands())
      if (operand != placed->part)
        join(group, *producer(operand));
    join(group, *groupOf(&op));
  }
}

// Ops of the next turn of the op's sequence.
ArrayRef<Operation *> FusionGraph::nextTurn(Operation *op) const {
  std::optional<mt::Turn> turn = turns.empty() ? std::nullopt : mt::turnOf(op);
  auto next = turn ? turns.upper_bound(*turn) : turns.end();
  return next != turns.end() && next->first.sequence == turn->sequence ? ArrayRef<Operation *>(next->second)
                                                                       : ArrayRef<Operation *>();
}

ArrayRef<Operation *> FusionGraph::formerTurn(Operation *op) const {
  std::optional<mt::Turn> turn = turns.empty() ? std::nullopt : mt::turnOf(op);
  auto own = turn ? turns.lower_bound(*turn) : turns.begin();
  return own != turns.begin() && std::prev(own)->first.sequence == turn->sequence
             ? ArrayRef<Operation *>(std::prev(own)->second)
             : ArrayRef<Operation *>();
}

} // namespace mtc
