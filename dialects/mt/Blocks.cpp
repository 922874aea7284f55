// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/Blocks.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Types.h"

using namespace mlir;
using namespace mlir::mt;

static std::optional<std::pair<int64_t, int64_t>> pairOf(Operation *op, StringRef name) {
  auto numbers = op->getAttrOfType<DenseI64ArrayAttr>(name);
  return numbers ? std::optional(std::pair(numbers[0], numbers[1])) : std::nullopt;
}
static void setPair(Operation *op, StringRef name, int64_t first, int64_t second) {
  op->setDiscardableAttr(name, DenseI64ArrayAttr::get(op->getContext(), {first, second}));
}

std::optional<LogitBlocks> mlir::mt::blocksOf(Operation *op) {
  auto found = pairOf(op, blocksAttribute);
  return found ? std::optional(LogitBlocks{found->first, found->second}) : std::nullopt;
}
void mlir::mt::setBlocks(Operation *op, LogitBlocks blocks) {
  setPair(op, blocksAttribute, blocks.sequence, blocks.size);
}

std::optional<Turn> mlir::mt::turnOf(Operation *op) {
  auto found = pairOf(op, turnAttribute);
  return found ? std::optional(Turn{found->first, found->second}) : std::nullopt;
}
void mlir::mt::setTurn(Operation *op, std::optional<Turn> turn) {
  if (turn)
    setPair(op, turnAttribute, turn->sequence, turn->number);
  else
    op->removeDiscardableAttr(turnAttribute);
}

SliceOp mlir::mt::slicedSide(MatmulOp product) {
  auto slice = product.getRhs().getDefiningOp<SliceOp>();
  return slice && tensorOf(slice.getResult()).getRank() == 2 && !isSplit(slice.getType()) &&
                 llvm::all_of(slice.getStrides(), [](int64_t stride) { return stride == 1; })
             ? slice
             : SliceOp();
}

// If `value` is a slice of `size` elements from index `from` on along `axis`, and of all elements along the other axes,
// returns the operand of the slice; else null.
static Value sliceOf(Value value, int64_t axis, int64_t from, int64_t size) {
  auto slice = value.getDefiningOp<SliceOp>();
  if (!slice || isSplit(slice.getType()) || !slice.getStrides().empty())
    return {};
  for (auto [i, start, count, all] :
       llvm::enumerate(slice.getStarts(), slice.getSizes(), tensorOf(slice.getOperand()).getShape()))
    if (start != (static_cast<int64_t>(i) == axis ? from : 0) ||
        count != (static_cast<int64_t>(i) == axis ? size : all))
      return {};
  return slice.getOperand();
}

std::optional<PlacedPart> mlir::mt::placedPartOf(Value result) {
  auto concat = result.getDefiningOp<ConcatOp>();
  if (!concat || isSplit(concat.getType()) || !blocksOf(concat) || concat.getOperands().size() < 2)
    return std::nullopt;
  PlacedPart placed{{}, {}, static_cast<int64_t>(concat.getDim()), 0};
  int64_t at = 0;
  for (Value operand : concat.getOperands()) {
    int64_t size = tensorOf(operand).getDimSize(placed.axis);
    if (Value whole = sliceOf(operand, placed.axis, at, size)) {
      if (whole.getType() != result.getType() || (placed.whole && placed.whole != whole))
        return std::nullopt;
      placed.whole = whole;
    } else if (placed.part) {
      return std::nullopt;
    } else {
      placed.part = operand;
      placed.from = at;
    }
    at += size;
  }
  return placed.part && placed.whole ? std::optional(placed) : std::nullopt;
}

Value mlir::mt::placePart(OpBuilder &builder, Location location, const PlacedPart &placed) {
  int64_t all = tensorOf(placed.whole).getDimSize(placed.axis), size = tensorOf(placed.part).getDimSize(placed.axis);
  auto rest = [&](int64_t from, int64_t count) {
    SmallVector<int64_t> starts(tensorOf(placed.whole).getRank(), 0), sizes(tensorOf(placed.whole).getShape());
    starts[placed.axis] = from;
    sizes[placed.axis] = count;
    return SliceOp::create(builder, location, placed.whole, starts, sizes, ArrayRef<int64_t>{}).getResult();
  };
  SmallVector<Value> parts;
  if (placed.from > 0)
    parts.push_back(rest(0, placed.from));
  parts.push_back(placed.part);
  if (int64_t end = placed.from + size; end < all)
    parts.push_back(rest(end, all - end));
  auto concat = ConcatOp::create(builder, location, parts, placed.axis);
  setBlocks(concat, {0, size});
  return concat;
}
