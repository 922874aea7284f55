// SPDX-License-Identifier: Apache-2.0
//
// The place of the largest element, which StableHLO writes as a reduction of values and places together; and the sign
// of a float by its bits, which TensorFlow looks at before.
#include "frontend/stablehlo/Call.h"

using namespace mlir;

namespace mtc::stablehlo {
namespace {

using logical::Value;

StringRef nameOf(Operation *op) { return op ? op->getName().getStringRef() : StringRef(); }

// Whether the value of the file counts along this axis.
bool countsAlong(mlir::Value value, int64_t axis) {
  constexpr int maxOps = 16;
  for (int i = 0; i < maxOps; ++i) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return false;
    StringRef name = nameOf(op);
    if (name == "stablehlo.iota" || name == "stablehlo.dynamic_iota") {
      auto along = op->getAttrOfType<IntegerAttr>("iota_dimension");
      return along && along.getInt() == axis;
    }
    if (name == "stablehlo.broadcast_in_dim" || name == "stablehlo.dynamic_broadcast_in_dim") {
      auto dimensions = op->getAttrOfType<DenseI64ArrayAttr>("broadcast_dimensions");
      const auto *found = dimensions ? llvm::find(dimensions.asArrayRef(), axis) : nullptr;
      if (!found || found == dimensions.asArrayRef().end())
        return false;
      axis = found - dimensions.asArrayRef().begin();
    } else if (name != "stablehlo.convert") {
      return false;
    }
    if (op->getNumOperands() == 0)
      return false;
    value = op->getOperand(0);
  }
  return false;
}

// Whether the reducer chooses the larger one of two elements, and of equal ones that with the smaller index.
bool choosesLarger(Operation &op) {
  if (op.getNumRegions() != 1 || !op.getRegion(0).hasOneBlock() || op.getRegion(0).front().getNumArguments() != 4)
    return false;
  Block &body = op.getRegion(0).front();
  bool larger = false, first = false;
  for (Operation &inner : body) {
    StringRef name = nameOf(&inner);
    if (!llvm::is_contained({"stablehlo.compare", "stablehlo.select", "stablehlo.minimum", "stablehlo.or",
                             "stablehlo.and", "stablehlo.return"},
                            name))
      return false;
    if (inner.getNumOperands() < 2)
      return false;
    first |= name == "stablehlo.minimum" && inner.getOperand(0) == body.getArgument(1) &&
             inner.getOperand(1) == body.getArgument(3);
    if (name != "stablehlo.compare")
      continue;
    auto kind = dyn_cast_or_null<OpaqueAttr>(inner.getAttr("comparison_direction"));
    StringRef direction = kind ? kind.getAttrData() : "";
    bool values = inner.getOperand(0) == body.getArgument(0) && inner.getOperand(1) == body.getArgument(2);
    bool places = inner.getOperand(0) == body.getArgument(1) && inner.getOperand(1) == body.getArgument(3);
    if ((values && (direction.ends_with("LT") || direction.ends_with("LE"))) || (places && !direction.ends_with("LT")))
      return false;
    larger |= values && (direction.ends_with("GT") || direction.ends_with("GE"));
    first |= places;
  }
  return larger && first;
}

// Whether something of the file tests the sign bit of such bits.
bool isSignTest(mlir::Value bits) {
  return !bits.use_empty() &&
         llvm::all_of(bits.getUsers(), [](Operation *user) { return nameOf(user) == "stablehlo.and"; });
}

// Gives -2^31 where the sign bit of a float is set, else 0. The other bits are left out, since no reader asks for them.
void buildBits(Call &call) {
  logical::Ops &ops = call.ops;
  Value value = call.value(0);
  if (!value.isFloat() || !call.resultType().getElementType().isInteger(32) || !isSignTest(call.op.getResult(0)))
    throw Refused("bits of numbers, such as random numbers are made of; the sign bit of a float is supported");
  constexpr double bit = -0x1p31;
  Value zero = ops.number(0, ops.real());
  Value inverse = logical::binary<mt::DivOp>(ops, ops.number(1, ops.real(), value.shape()), value); // of -0 too
  Value negative = logical::logicalOr(ops, logical::compare(ops, mt::Compare::lt, value, zero),
                                      logical::compare(ops, mt::Compare::lt, inverse, zero));
  call.give(logical::select(ops, negative, ops.number(bit, ops.i32()), ops.number(0, ops.i32())));
}

} // namespace

bool isSignBit(const Call &call) {
  for (size_t i : {0, 1}) {
    const Known *mask = call.known(1 - i);
    constexpr double bit = -0x1p31;
    if (mask && !mask->hasBatch() && llvm::all_of(mask->numbers, [](double number) { return number == bit; }) &&
        nameOf(call.op.getOperand(i).getDefiningOp()) == "stablehlo.bitcast_convert")
      return true;
    // In a step the mask may have the batch.
    mlir::Value other = call.op.getOperand(1 - i);
    if (Operation *broadcast = other.getDefiningOp();
        nameOf(broadcast) == "stablehlo.broadcast_in_dim" && broadcast->getNumOperands() > 0)
      other = broadcast->getOperand(0);
    auto elements = other.getDefiningOp() ? other.getDefiningOp()->getAttrOfType<DenseIntElementsAttr>("value")
                                          : DenseIntElementsAttr();
    if (elements && elements.isSplat() && elements.getSplatValue<APInt>().isSignMask() &&
        nameOf(call.op.getOperand(i).getDefiningOp()) == "stablehlo.bitcast_convert")
      return true;
  }
  return false;
}

bool buildArgmax(Call &call) {
  SmallVector<int64_t> axes = call.integers("dimensions");
  if (call.operands.size() != 4 || call.op.getNumResults() != 2 || axes.size() != 1 ||
      !countsAlong(call.op.getOperand(1), axes[0]) || !choosesLarger(call.op))
    return false;
  Value value = call.value(0);
  size_t axis = logical::checkAxis(axes[0], value.rank());
  if (value.size(axis).batch)
    throw Refused("a maximum over the samples of the batch");
  bool values = !call.op.getResult(0).use_empty();
  call.give(values ? logical::reduce(call.ops, mt::Reduction::max, value, axes)
                   : logical::cast(call.ops, logical::argmax(call.ops, value, axis), value.element()));
  call.give(logical::argmax(call.ops, value, axis));
  return true;
}

llvm::ArrayRef<OpEntry> bitOps() {
  static constexpr OpEntry entries[] = {{"bitcast_convert", buildBits, 1}};
  return entries;
}

} // namespace mtc::stablehlo
