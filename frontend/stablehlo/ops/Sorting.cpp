// SPDX-License-Identifier: Apache-2.0
//
// stablehlo.sort. chlo.top_k is a composite of a sort and two slices.
#include "frontend/logical/Sorting.h"
#include "frontend/stablehlo/Call.h"

using namespace mlir;

namespace mtc::stablehlo {
namespace {

using Value = logical::Value;

bool isCompare(Operation *op, StringRef direction) {
  auto given = op ? dyn_cast_or_null<OpaqueAttr>(op->getAttr("comparison_direction")) : OpaqueAttr();
  return given && op->getName().getStringRef() == "stablehlo.compare" && op->getNumOperands() == 2 &&
         given.getAttrData().contains(direction);
}

bool isNan(mlir::Value value) {
  Operation *op = value.getDefiningOp();
  auto elements = op ? dyn_cast_or_null<DenseElementsAttr>(op->getAttr("value")) : DenseElementsAttr();
  return elements && elements.isSplat() && isa<FloatType>(elements.getElementType()) &&
         elements.getSplatValue<APFloat>().isNaN();
}

// The argument whose order a comparison follows. JAX writes one zero for both zeros and one NaN for all NaNs before it
// compares in the total order, where they would be different: `select(x == 0, 0, x)`, `select(x != x, NaN, x)`.
mlir::Value argumentOf(mlir::Value value) {
  for (Operation *op = value.getDefiningOp(); op; op = value.getDefiningOp()) {
    if (op->getName().getStringRef() != "stablehlo.select" || op->getNumOperands() != 3)
      return {};
    Operation *condition = op->getOperand(0).getDefiningOp();
    bool oneZero = isCompare(condition, "EQ") && condition->getOperand(1) == op->getOperand(1);
    bool oneNan =
        isCompare(condition, "NE") && condition->getOperand(0) == condition->getOperand(1) && isNan(op->getOperand(1));
    mlir::Value rest = op->getOperand(2);
    if ((!oneZero && !oneNan) || argumentOf(rest) != condition->getOperand(0))
      return {};
    value = rest;
  }
  return value;
}

struct Order {
  size_t key;
  bool descending;
};

Order orderOf(Operation &op) {
  if (op.getNumRegions() == 1 && op.getRegion(0).hasOneBlock() && !op.getRegion(0).front().empty()) {
    Block &block = op.getRegion(0).front();
    Operation &last = block.back();
    Operation *compare = last.getNumOperands() == 1 ? last.getOperand(0).getDefiningOp() : nullptr;
    bool rising = isCompare(compare, "LT"), falling = isCompare(compare, "GT");
    if (rising || falling) {
      auto first = dyn_cast_or_null<BlockArgument>(argumentOf(compare->getOperand(0)));
      auto second = dyn_cast_or_null<BlockArgument>(argumentOf(compare->getOperand(1)));
      if (first && second && first.getOwner() == &block && second.getOwner() == &block &&
          first.getArgNumber() / 2 == second.getArgNumber() / 2 && first != second)
        return {first.getArgNumber() / 2, falling == (first.getArgNumber() < second.getArgNumber())};
    }
  }
  throw Refused("a sort whose comparison is not LT or GT of one of the operands");
}

void buildSort(Call &call) {
  Order order = orderOf(call.op);
  if (call.operands.empty() || order.key >= call.operands.size())
    throw Refused("expected operands to sort, found none");
  Value key = call.value(order.key);
  auto rank = static_cast<int64_t>(key.rank());
  int64_t given = call.integer("dimension", -1);
  size_t axis = logical::checkAxis(given < 0 ? given + rank : given, key.rank());
  if (key.size(axis).batch)
    throw Refused("the order of the samples");
  Value places = logical::sortedPlaces(call.ops, {key}, key.size(axis).times, axis, order.descending);
  for (size_t i = 0; i < call.operands.size(); ++i) {
    if (call.shape(i) != key.shape())
      throw Refused("expected operands of one shape to sort");
    call.give(logical::takeAlong(call.ops, call.value(i), places, axis));
  }
}

} // namespace

llvm::ArrayRef<OpEntry> sortingOps() {
  static constexpr OpEntry entries[] = {{"sort", buildSort, anyNumber}};
  return entries;
}

} // namespace mtc::stablehlo
