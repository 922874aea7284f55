// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/Lines.h"
#include "dialects/mt/Types.h"

namespace mlir::mt {

static int64_t product(ArrayRef<int64_t> sizes) { return ShapedType::getNumElements(sizes); }

int64_t lineAxes(Type type, int64_t lines) {
  ArrayRef<int64_t> shape = sampleShape(type);
  int64_t count = 1;
  for (size_t axes = 0; axes <= shape.size(); ++axes) {
    if (count == lines)
      return axes;
    if (axes < shape.size())
      count *= shape[axes];
  }
  return -1;
}

// Part of an operand whose lines are the lines of the result.
static std::optional<LinePart> ownPart(Value operand, int64_t lines) {
  int64_t axes = isSplit(operand.getType()) ? lineAxes(operand.getType(), lines) : -1;
  return axes < 0 ? std::nullopt : std::optional(LinePart{1, 0, axes});
}

// Part of an operand that broadcasts to a result whose first axes are `first`; the shapes are aligned at the last axis.
static std::optional<LinePart> repeatedPart(Value operand, RankedTensorType result, ArrayRef<int64_t> first) {
  bool split = isSplit(operand.getType());
  ArrayRef<int64_t> shape = sampleShape(operand.getType());
  int64_t rest = static_cast<int64_t>(sampleShape(result).size() - first.size());
  int64_t axes = static_cast<int64_t>(shape.size()) - rest;
  if (axes < 0)
    return split ? std::nullopt : std::optional(LinePart{0, 0, 0});
  if (split && axes != static_cast<int64_t>(first.size()))
    return std::nullopt;
  if (axes > static_cast<int64_t>(first.size()))
    return std::nullopt;
  ArrayRef<int64_t> own = shape.take_front(axes), ends = first.take_back(axes);
  if (product(own) == 1)
    return LinePart{split ? product(first) : 0, 0, axes};
  // The operand has some of the result's axes, between axes of size 1.
  size_t from = 0, to = own.size();
  while (own[from] == 1 && ends[from] != 1)
    ++from;
  while (own[to - 1] == 1 && ends[to - 1] != 1)
    --to;
  if (own.slice(from, to - from) != ends.slice(from, to - from))
    return std::nullopt;
  int64_t divisor = product(ends.drop_front(to)), count = product(own);
  bool leads = count * divisor == product(first);
  if (split && !leads)
    return std::nullopt;
  return LinePart{divisor, split ? 0 : count, axes};
}

bool isComputedByLine(Operation *op, int64_t lines, SmallVectorImpl<LinePart> &parts) {
  if (op->getNumResults() != 1 || op->getNumRegions() || !isSplit(op->getResult(0).getType()))
    return false;
  auto result = tensorOf(op->getResult(0));
  int64_t axes = lineAxes(result, lines);
  if (axes < 0)
    return false;
  ArrayRef<int64_t> first = sampleShape(result).take_front(axes);
  auto each = [&](llvm::function_ref<std::optional<LinePart>(Value)> partOf) {
    for (Value operand : op->getOperands()) {
      std::optional<LinePart> part = partOf(operand);
      if (!part)
        return false;
      parts.push_back(*part);
    }
    return true;
  };
  if (isa<ElementwiseOpInterface, BroadcastOp>(op))
    return each([&](Value operand) { return repeatedPart(operand, result, first); });
  if (isa<RandomUniformOp>(op)) // the operand is the step
    return each([](Value) { return LinePart{0, 0, 0}; });
  if (auto gather = dyn_cast<GatherOp>(op)) {
    if (isSplit(gather.getTable().getType()) || lineAxes(gather.getIds().getType(), lines) != axes)
      return false;
    parts.append({LinePart{0, 0, 0}, LinePart{1, 0, axes}});
    return true;
  }
  if (!each([&](Value operand) { return ownPart(operand, lines); }))
    return false;
  auto sameAxes = [&] { return llvm::all_of(parts, [&](const LinePart &part) { return part.axes == axes; }); };
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return sameAxes() && llvm::all_of(reduce.getDims(), [&](int64_t dim) { return dim > axes; });
  if (isa<ArgmaxOp>(op))
    return sameAxes();
  if (isa<MatmulOp>(op))
    return sameAxes() && result.getRank() >= axes + 3;
  if (isa<ReshapeOp>(op))
    return true;
  auto move = dyn_cast<MoveOpInterface>(op);
  return move && sameAxes() && move.keepsFirstAxes(axes);
}

// Whether an op without a batch axis has the same result for all lines, so that a kernel can compute it in each line.
static bool isSameForLines(Operation *op) {
  auto type = tensorOf(op->getResult(0));
  return isa<ConstantOp>(op) || type.getNumElements() == 1 || (isa<IotaOp>(op) && type.getRank() == 1);
}

bool areComputedByLine(ArrayRef<Operation *> ops, int64_t lines, llvm::DenseMap<Value, LinePart> &parts) {
  llvm::SmallPtrSet<Operation *, 16> inside(ops.begin(), ops.end());
  for (Operation *op : ops) {
    if (!isSplit(op->getResult(0).getType())) {
      if (!isSameForLines(op))
        return false;
      continue;
    }
    SmallVector<LinePart> read;
    if (!isComputedByLine(op, lines, read))
      return false;
    for (auto [operand, part] : llvm::zip_equal(op->getOperands(), read)) {
      if (splatOf(operand))
        continue;
      bool here = operand.getDefiningOp() && inside.contains(operand.getDefiningOp());
      bool known = !here                        ? parts.try_emplace(operand, part).first->second == part
                   : isSplit(operand.getType()) ? part.isOwn()
                                                : part.isWhole() && part.axes == 0;
      if (!known)
        return false;
    }
  }
  return true;
}

void becomeLine(Operation *op, int64_t axes) {
  auto type = tensorOf(op->getResult(0));
  SmallVector<int64_t> shape{ShapedType::kDynamic};
  llvm::append_range(shape, sampleShape(type).drop_front(axes));
  op->getResult(0).setType(type.clone(shape));
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    SmallVector<int64_t> dims(reduce.getDims());
    for (int64_t &dim : dims)
      dim -= axes;
    reduce.setDims(dims);
  } else if (auto move = dyn_cast<MoveOpInterface>(op)) {
    move.dropFirstAxes(axes);
  }
}

} // namespace mlir::mt
