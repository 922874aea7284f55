// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/common/LineForm.h"
#include "compiler/codegen/common/Emitter.h"
#include "compiler/codegen/common/Shapes.h"

using namespace mlir;
using namespace mtc;
using mt::LinePart;

// The part of each argument of the body that a line reads; nullopt if the ops are not independent along these lines.
static std::optional<SmallVector<LinePart>> partsOf(Block &body, int64_t lines) {
  SmallVector<Operation *> ops;
  for (Operation &op : body.without_terminator())
    ops.push_back(&op);
  llvm::DenseMap<Value, LinePart> parts;
  if (!mt::areComputedByLine(ops, lines, parts))
    return std::nullopt;
  for (Value yield : body.getTerminator()->getOperands()) {
    LinePart own{1, 0, mt::lineAxes(yield.getType(), lines)};
    if (own.axes < 0 || (isa<BlockArgument>(yield) && !(parts.try_emplace(yield, own).first->second == own)))
      return std::nullopt;
  }
  SmallVector<LinePart> result;
  for (Value argument : body.getArguments()) {
    auto it = parts.find(argument);
    // Without an entry, the argument is not read, or only by ops without a batch axis.
    result.push_back(it == parts.end() ? LinePart{0, 0, 0} : it->second);
  }
  return result;
}

// Bytes of the values of one line.
static int64_t bytesOf(Block &body, int64_t lines) {
  int64_t bytes = 0;
  auto add = [&](Value value) {
    if (isSplit(value))
      bytes += innerCount(value) * ceilDiv(elementOf(value).getIntOrFloatBitWidth(), 8);
  };
  llvm::for_each(body.getArguments(), add);
  for (Operation &op : body.without_terminator())
    add(op.getResult(0));
  return ceilDiv(bytes, lines);
}

LineForm mtc::lineFormOf(plan::KernelOp op, int64_t bytes) {
  Block &body = op.getBody().front();
  LineForm form{1, bytesOf(body, 1), {}};
  if (op.getKind() != mt::KernelKind::rows || form.bytes <= bytes)
    return form;
  // The results have the same lines.
  Value result = body.getTerminator()->getOperand(0);
  int64_t lines = 1;
  for (int64_t size : innerShape(result)) {
    if (size == 1)
      continue;
    lines *= size;
    auto parts = partsOf(body, lines);
    if (!parts)
      continue;
    form = {lines, bytesOf(body, lines), std::move(*parts)};
    if (form.bytes <= bytes)
      break;
  }
  return form;
}

// One element of a constant whose elements are all equal; a line repeats it.
static Value elementOfConstant(OpBuilder &builder, Location location, SplatElementsAttr constant) {
  auto scalar = RankedTensorType::get({}, constant.getElementType());
  return mt::ConstantOp::create(builder, location, scalar,
                                DenseElementsAttr::get(scalar, constant.getSplatValue<Attribute>()));
}

void mtc::becomeLine(plan::KernelOp op, const LineForm &form) {
  if (form.lines == 1)
    return;
  Block &body = op.getBody().front();
  for (Operation &inner : llvm::make_early_inc_range(body.without_terminator())) {
    if (!isSplit(inner.getResult(0)))
      continue;
    OpBuilder builder(&inner);
    for (OpOperand &operand : inner.getOpOperands())
      if (SplatElementsAttr splat = mt::splatOf(operand.get());
          splat && isa<mt::ElementwiseOpInterface, mt::BroadcastOp>(inner))
        operand.set(elementOfConstant(builder, operand.get().getLoc(), splat));
    mt::becomeLine(&inner, mt::lineAxes(inner.getResult(0).getType(), form.lines));
  }
  for (auto [argument, part] : llvm::zip_equal(body.getArguments(), form.arguments)) {
    RankedTensorType type = tensorOf(argument);
    SmallVector<int64_t> shape;
    if (!part.isWhole())
      shape.push_back(ShapedType::kDynamic);
    llvm::append_range(shape, innerShape(argument).drop_front(part.axes));
    argument.setType(type.clone(shape));
  }
}

Value mtc::partAt(Emitter &emit, const LinePart &part, Value line) {
  // `line` counts the lines of all rows. A row has a multiple of divisor * modulus lines, so the remainder is the one
  // within the row.
  Value index = part.divisor > 1 ? emit.div(line, emit.integer(part.divisor)) : line;
  return part.modulus ? emit.rem(index, emit.integer(part.modulus)) : index;
}
