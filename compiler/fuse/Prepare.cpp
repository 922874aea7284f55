// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/Prepare.h"
#include "compiler/fuse/Computations.h"
#include "dialects/mt/Types.h"

namespace mtc {

using namespace mlir;

using mt::tensorOf;

// The transpose that computes `matrix`; null if there is none.
static mt::TransposeOp transposedMatrix(Value matrix) {
  auto transpose = matrix.getDefiningOp<mt::TransposeOp>();
  return transpose && transpose.getPermutation() == ArrayRef<int64_t>{1, 0} ? transpose : mt::TransposeOp();
}

// The transposed matrix, which is built once for all readers.
static Value transposed(OpBuilder &builder, Location location, Value matrix, llvm::DenseMap<Value, Value> &known) {
  if (mt::TransposeOp transpose = transposedMatrix(matrix))
    return transpose.getOperand();
  Value &result = known[matrix];
  if (!result) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfterValue(matrix);
    result = mt::TransposeOp::create(builder, location, matrix, ArrayRef<int64_t>{1, 0});
  }
  return result;
}

static void removeTransposes(mt::MatmulOp op, llvm::DenseMap<Value, Value> &known) {
  if (tensorOf(op.getRhs()).getRank() != 2)
    return;
  OpBuilder builder(op);
  // The code for products transposes the right side when it packs it, so only an explicit transpose is removed.
  if (auto transpose = transposedMatrix(op.getRhs()); transpose && op.getTransposeB()) {
    op.getRhsMutable().assign(transpose.getOperand());
    op.setTransposeB(false);
  }
  if (op.getTransposeA() && tensorOf(op.getLhs()).getRank() == 2 && !mt::isSplit(op.getLhs().getType())) {
    op.getLhsMutable().assign(transposed(builder, op.getLoc(), op.getLhs(), known));
    op.setTransposeA(false);
  }
}

// Replaces `x + broadcast(y)` by `x + y` if x already has the shape of the result.
static void bypassBroadcasts(Operation *op) {
  if (!isa<mt::ElementwiseOpInterface>(op) || op->getNumOperands() < 2)
    return;
  for (OpOperand &operand : op->getOpOperands()) {
    auto broadcast = operand.get().getDefiningOp<mt::BroadcastOp>();
    if (!broadcast)
      continue;
    auto source = tensorOf(broadcast.getOperand());
    auto result = tensorOf(op->getResult(0));
    // A split operand must keep the rank of the result.
    if (mt::isSplit(source) && source.getRank() != result.getRank())
      continue;
    bool othersCover = llvm::any_of(op->getOpOperands(), [&](OpOperand &other) {
      return &other != &operand && tensorOf(other.get()).getShape() == result.getShape();
    });
    if (othersCover)
      operand.set(broadcast.getOperand());
  }
}

// Whether the op is `x - v`, where v is computed from sums of x over the batch, as in the statistics of batch
// normalization. x is in memory, so every user computes the difference again, and the difference is not stored.
static bool isRecomputed(Operation *op) {
  if (!isa<mt::ElementwiseOpInterface>(op) || op->hasOneUse() || !mt::isSplit(op->getResult(0).getType()))
    return false;
  Value split;
  for (Value operand : op->getOperands()) {
    if (!mt::isSplit(operand.getType()))
      continue;
    if (split)
      return false;
    split = operand;
  }
  auto isSum = [](Operation *user) { return isa<mt::ReduceOp>(user); };
  auto computes = [](Operation *user) { return isa<mt::ElementwiseOpInterface, mt::ReduceOp>(user); };
  if (!split)
    return false;
  return tensorOf(split).getShape() == tensorOf(op->getResult(0)).getShape() &&
         mt::elementsPerRow(split.getType()) > 1 &&
         (llvm::any_of(split.getUsers(), isSum) || llvm::any_of(truncated(split).getUsers(), isSum)) &&
         llvm::all_of(op->getUsers(), computes);
}

// Whether the op chooses, by a mask, between constants and values that all pixels of a sample share: the gradient of
// the ReLU before a global average pool. The mask has a quarter of the bytes of the result, so every user chooses
// again.
static bool isSharedChoice(mt::SelectOp op) {
  RankedTensorType type = tensorOf(op.getResult());
  auto isShared = [&](Value value) {
    int64_t elements = mt::elementsPerRow(value.getType());
    return mt::splatOf(value) || tensorOf(value).getRank() == 0 ||
           (elements == type.getShape().back() && elements < mt::elementsPerRow(type));
  };
  auto computes = [](Operation *user) { return isa<mt::ElementwiseOpInterface, mt::ReduceOp>(user); };
  return !op->hasOneUse() && mt::isSplit(type) && type.getElementType().isF32() && type.getRank() == 4 &&
         tensorOf(op.getOperand(0)).getShape() == type.getShape() && isShared(op.getLhs()) && isShared(op.getRhs()) &&
         llvm::all_of(op->getUsers(), computes);
}

// Clones the op for each user.
static void recompute(Operation *op) {
  llvm::SmallSetVector<Operation *, 8> users(op->user_begin(), op->user_end());
  for (Operation *user : users) {
    OpBuilder builder(user);
    user->replaceUsesOfWith(op->getResult(0), builder.clone(*op)->getResult(0));
  }
  op->erase();
}

// The 16-bit type that holds every result of the select: it chooses between values extended from that type and
// constants that the type represents. Null if there is none.
static Type halfOf(mt::SelectOp op) {
  Type half;
  for (Value choice : {op.getLhs(), op.getRhs()})
    if (Value from = extendedFrom(choice))
      half = tensorOf(from).getElementType();
  if (!half)
    return {};
  auto fits = [&](Value choice) {
    if (Value from = extendedFrom(choice))
      return tensorOf(from).getElementType() == half;
    SplatElementsAttr constant = mt::splatOf(choice);
    if (!constant)
      return false;
    bool loses = false;
    auto number = constant.getSplatValue<APFloat>();
    number.convert(cast<FloatType>(half).getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
    return !loses;
  };
  return fits(op.getLhs()) && fits(op.getRhs()) ? half : Type();
}

// Stores the result of a select in the 16-bit type from which its operands are extended: gradients of ReLUs, and of
// dropped or masked values.
static void storeAsHalf(mt::SelectOp op) {
  Type half = halfOf(op);
  auto isStored = [](Operation *user) { return !isa<mt::CastOp>(user); };
  if (!half || !mt::isSplit(op.getResult().getType()) || llvm::none_of(op->getUsers(), isStored))
    return;
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  RankedTensorType type = tensorOf(op.getResult());
  auto truncated = mt::CastOp::create(builder, op.getLoc(), type.clone(half), op.getResult());
  auto extended = mt::CastOp::create(builder, op.getLoc(), type, truncated);
  op.getResult().replaceAllUsesExcept(extended, truncated);
}

// Replaces a repeated constant by a constant of the larger shape.
static bool foldIntoConstant(Operation *op) {
  if (!op->hasTrait<mt::Repeats>() || mt::isSplit(op->getResult(0).getType()))
    return false;
  SplatElementsAttr value = mt::splatOf(op->getOperand(0));
  if (!value)
    return false;
  OpBuilder builder(op);
  auto splat = DenseElementsAttr::get(tensorOf(op->getResult(0)), value.getSplatValue<Attribute>());
  op->getResult(0).replaceAllUsesWith(mt::ConstantOp::create(builder, op->getLoc(), tensorOf(op->getResult(0)), splat));
  op->erase();
  return true;
}

static void makeUnconditional(mt::AssignOp op) {
  if (!op.getApply())
    return;
  OpBuilder builder(op);
  Value old = mt::ReadOp::create(builder, op.getLoc(), op.getValue().getType(), op.getName());
  Value value = mt::SelectOp::create(builder, op.getLoc(), op.getApply(), op.getValue(), old);
  mt::AssignOp::create(builder, op.getLoc(), op.getName(), value, Value());
  op.erase();
}

// Whether the op reads each operand from a buffer, which recomputed values lack: ops that report to the runtime, and
// ops whose kernel computes no operand.
static bool readsBuffers(Operation &op) {
  auto own = dyn_cast<mt::KernelOpInterface>(op);
  return op.hasTrait<mt::Reports>() || (own && own.readsBuffers());
}

static void placeOperands(Operation &op, const RecomputedValues &recomputed, llvm::DenseMap<Value, Value> &placed) {
  OpBuilder builder(&op);
  for (OpOperand &operand : op.getOpOperands()) {
    if (!recomputed.contains(operand.get()))
      continue;
    Value &copy = placed[operand.get()];
    if (!copy)
      copy = mt::ReshapeOp::create(builder, op.getLoc(), operand.get().getType(), operand.get());
    operand.set(copy);
  }
}

void prepareForFusion(mt::ProgramOp program, bool images, bool gpusAlone) {
  Block &body = program.getBody().front();
  masksBeforePools(program);
  for (auto op : llvm::make_early_inc_range(body.getOps<mt::AssignOp>()))
    makeUnconditional(op);
  llvm::DenseMap<Value, Value> known;
  for (Operation &op : llvm::make_early_inc_range(body)) {
    if (foldIntoConstant(&op))
      continue;
    if (auto matmul = dyn_cast<mt::MatmulOp>(op))
      removeTransposes(matmul, known);
    bypassBroadcasts(&op);
  }
  for (auto op : llvm::make_early_inc_range(body.getOps<mt::SelectOp>()))
    storeAsHalf(op);
  for (Operation &op : llvm::make_early_inc_range(body))
    if (isRecomputed(&op))
      recompute(&op);
  for (auto op : llvm::make_early_inc_range(body.getOps<mt::SelectOp>()))
    if (gpusAlone && isSharedChoice(op))
      recompute(op);
  for (auto op : llvm::make_early_inc_range(body.getOps<mt::CastOp>()))
    if (extendedFrom(op.getResult()) && !op->hasOneUse())
      recompute(op);
  prepareBlocks(program);
  RecomputedValues recomputed(body);
  llvm::DenseMap<Value, Value> placed;
  for (Operation &op : llvm::make_early_inc_range(body))
    if (readsBuffers(op))
      placeOperands(op, recomputed, placed);
  // Producers precede users, so one walk from the end removes all ops that became unused.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isa<mt::CostOpInterface>(op) && op.use_empty())
      op.erase();
  splitKernelGradients(program, images, gpusAlone);
  if (images)
    recomputeSmallConvolutions(program);
}

} // namespace mtc
