// SPDX-License-Identifier: Apache-2.0
#include "compiler/recognize/Match.h"
#include "dialects/mt/Elementwise.h"
#include "dialects/mt/Types.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace mtc {

using mt::tensorOf;

Value withoutReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<mt::ReshapeOp>())
    value = reshape.getOperand();
  return value;
}

std::optional<double> numberOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<mt::ReshapeOp, mt::BroadcastOp>(op))
      break;
    value = op->getOperand(0);
  }
  SplatElementsAttr splat = mt::splatOf(value);
  if (!splat || !isa<FloatType>(splat.getElementType()))
    return std::nullopt;
  return splat.getSplatValue<APFloat>().convertToDouble();
}

bool Reduced::isOverLastAxis() const { return dims == ArrayRef<int64_t>{tensorOf(operand).getRank() - 1}; }

bool Reduced::broadcasts(Value value) const {
  SmallVector<int64_t> shape(tensorOf(operand).getShape());
  for (int64_t axis : dims)
    shape[axis] = 1;
  return tensorOf(value).getShape() == ArrayRef<int64_t>(shape);
}

std::optional<Reduced> reducedBy(Value value, mt::Reduction kind) {
  auto reduce = withoutReshapes(value).getDefiningOp<mt::ReduceOp>();
  if (!reduce || reduce.getKind() != kind)
    return std::nullopt;
  return Reduced{reduce.getOperand(), llvm::to_vector(reduce.getDims())};
}

std::optional<Reduced> meanOf(Value value) {
  double scale = 1;
  Value sum = withoutReshapes(value);
  if (auto divide = sum.getDefiningOp<mt::DivOp>()) {
    std::optional<double> number = numberOf(divide.getRhs());
    if (!number)
      return std::nullopt;
    scale = 1 / *number;
    sum = divide.getLhs();
  } else if (auto multiply = sum.getDefiningOp<mt::MulOp>()) {
    std::optional<double> left = numberOf(multiply.getLhs()), right = numberOf(multiply.getRhs());
    if (left.has_value() == right.has_value())
      return std::nullopt;
    scale = left ? *left : *right;
    sum = left ? multiply.getRhs() : multiply.getLhs();
  }
  std::optional<Reduced> reduced = reducedBy(sum, mt::Reduction::sum);
  if (!reduced)
    return std::nullopt;
  double count = 1;
  for (int64_t axis : reduced->dims) {
    int64_t size = tensorOf(reduced->operand).getDimSize(axis);
    if (ShapedType::isDynamic(size))
      return std::nullopt;
    count *= static_cast<double>(size);
  }
  constexpr double rounding = 1e-6;
  return std::abs(scale * count - 1) < rounding ? reduced : std::nullopt;
}

static void addFactors(Value product, Factors &factors, int depth) {
  constexpr int deepest = 8;
  Operation *op = product.getDefiningOp();
  if (std::optional<double> number = numberOf(product)) {
    factors.number *= *number;
  } else if (auto multiply = dyn_cast_or_null<mt::MulOp>(op); multiply && depth < deepest) {
    addFactors(multiply.getLhs(), factors, depth + 1);
    addFactors(multiply.getRhs(), factors, depth + 1);
  } else if (auto divide = dyn_cast_or_null<mt::DivOp>(op); divide && numberOf(divide.getRhs()) && depth < deepest) {
    factors.number /= *numberOf(divide.getRhs());
    addFactors(divide.getLhs(), factors, depth + 1);
  } else if (auto negate = dyn_cast_or_null<mt::NegOp>(op); negate && depth < deepest) {
    factors.number = -factors.number;
    addFactors(negate.getOperand(), factors, depth + 1);
  } else {
    factors.values.push_back(product);
  }
}

Factors factorsOf(Value product) {
  Factors factors;
  addFactors(product, factors, 0);
  return factors;
}

Value transposed(OpBuilder &builder, Location location, Value value, ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> order(permutation);
  if (auto inner = value.getDefiningOp<mt::TransposeOp>()) {
    for (int64_t &axis : order)
      axis = inner.getPermutation()[axis];
    value = inner.getOperand();
  }
  if (llvm::equal(order, llvm::seq<int64_t>(0, static_cast<int64_t>(order.size()))))
    return value;
  return mt::TransposeOp::create(builder, location, value, order);
}

Value reshaped(OpBuilder &builder, Location location, Value value, ArrayRef<int64_t> shape) {
  if (tensorOf(value).getShape() == shape)
    return value;
  value = withoutReshapes(value);
  RankedTensorType type = tensorOf(value).clone(shape);
  return value.getType() == type ? value : mt::ReshapeOp::create(builder, location, type, value).getResult();
}

// Erases operations that nothing reads, and what only they read.
static void eraseDead(SmallVector<Operation *> waiting) {
  llvm::DenseSet<Operation *> erased;
  while (!waiting.empty()) {
    Operation *top = waiting.pop_back_val();
    bool declares = !erased.contains(top) && top->getNumOperands() == 0 && !isa<mt::ConstantOp>(top);
    if (erased.contains(top) || declares || !isOpTriviallyDead(top))
      continue;
    llvm::SmallSetVector<Operation *, 4> read;
    for (Value operand : top->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        read.insert(producer);
    erased.insert(top);
    top->erase();
    llvm::append_range(waiting, read);
  }
}

// For a transpose, a reshape that joins adjacent axes, and the transpose `second`: returns only the reshape if `second`
// undoes the first transpose, and null if not.
static Value undone(mt::TransposeOp second) {
  auto reshape = second.getOperand().getDefiningOp<mt::ReshapeOp>();
  auto first = reshape ? reshape.getOperand().getDefiningOp<mt::TransposeOp>() : mt::TransposeOp();
  if (!first)
    return {};
  // The axes of `first` that each axis of the reshape joins.
  ArrayRef<int64_t> fine = first.getType().getShape(), joined = reshape.getType().getShape();
  SmallVector<SmallVector<int64_t>> groups;
  size_t next = 0;
  for (int64_t size : joined) {
    SmallVector<int64_t> &group = groups.emplace_back();
    for (int64_t product = 1; next < fine.size() && (group.empty() || product != size); ++next) {
      if (ShapedType::isDynamic(fine[next]) != ShapedType::isDynamic(size) || ShapedType::isDynamic(product))
        return {};
      product = ShapedType::isDynamic(size) ? size : product * fine[next];
      group.push_back(next);
      if (!ShapedType::isDynamic(size) && product > size)
        return {};
    }
  }
  SmallVector<int64_t> order;
  for (int64_t axis : second.getPermutation())
    for (int64_t part : groups[axis])
      order.push_back(first.getPermutation()[part]);
  if (next != fine.size() || !llvm::equal(order, llvm::seq<int64_t>(0, static_cast<int64_t>(fine.size()))))
    return {};
  OpBuilder builder(second);
  return reshaped(builder, second.getLoc(), first.getOperand(), second.getType().getShape());
}

// A transpose of a transpose, or a reshape of a reshape, becomes one operation or none.
static void foldMoves(Value value, SmallVectorImpl<Operation *> &unread) {
  Operation *producer = value.getDefiningOp();
  for (Operation *user : llvm::to_vector(value.getUsers())) {
    if (user->use_empty())
      continue; // it is folded already, or nothing reads it
    OpBuilder builder(user);
    Value folded;
    auto transpose = dyn_cast<mt::TransposeOp>(user);
    if (transpose && isa_and_nonnull<mt::TransposeOp>(producer))
      folded = transposed(builder, user->getLoc(), value, transpose.getPermutation());
    else if (isa<mt::ReshapeOp>(user) && isa_and_nonnull<mt::ReshapeOp>(producer))
      folded = reshaped(builder, user->getLoc(), value, tensorOf(user->getResult(0)).getShape());
    else if (transpose)
      folded = undone(transpose);
    if (!folded) {
      if (isa<mt::ReshapeOp>(user))
        foldMoves(user->getResult(0), unread);
      continue;
    }
    user->getResult(0).replaceAllUsesWith(folded);
    unread.push_back(user);
    foldMoves(folded, unread);
  }
}

void replaceMatched(Operation *op, Value replacement) {
  op->getResult(0).replaceAllUsesWith(replacement);
  SmallVector<Operation *> unread = {op};
  foldMoves(replacement, unread);
  eraseDead(unread);
}

} // namespace mtc
