// SPDX-License-Identifier: Apache-2.0
//
// mt-precision: selects the values that are rounded to 16 bits (docs/precision.md section 1).
#include "compiler/Passes.h"
#include "compiler/differentiate/Simplify.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Types.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_PRECISION
#include "compiler/Passes.h.inc"

namespace {

using mt::tensorOf;

// Whether the value is stored in f32 in any case: an input, a variable or a constant.
bool isGiven(Value value) {
  return isa<mt::InputOp, mt::TargetOp, mt::SampleWeightOp, mt::ReadOp, mt::ConstantOp>(value.getDefiningOp());
}

bool isKept(Operation *op) { return bool(mt::precisionOf(op)); }

bool staysFloat32(Operation *op) { return op->hasTrait<mt::StaysFloat32>(); }
// Whether the op itself rounds its result, so that no cast follows it.
bool roundsResult(Operation *op) { return op->hasTrait<mt::SameFloats>() && !staysFloat32(op) && !isKept(op); }

// The operand of an extending cast; null for any other value.
Value truncatedOf(Value value) {
  auto extended = value.getDefiningOp<mt::CastOp>();
  return extended && mt::isHalf(tensorOf(extended.getOperand()).getElementType()) ? extended.getOperand() : Value();
}

class Rounding {
public:
  Rounding(mt::ProgramOp program, Type half) : program(program), half(half) {}

  void run() {
    takeCompleteGradients();
    for (Operation &op : program.getBody().front()) {
      if (op.hasTrait<mt::Rounds>() && !isKept(&op))
        chooseOperands(&op);
      if (roundsResult(&op))
        chosen.insert(op.getResult(0));
      else if (op.hasTrait<mt::Contraction>() && !isKept(&op) && !staysFloat32(&op) && isStored(op.getResult(0)))
        chosen.insert(wholeGradient(wholeSum(withBias(op.getResult(0)))));
    }
    chooseGradients();
    for (Value value : chosen)
      round(value);
    for (Operation &op : llvm::make_early_inc_range(program.getBody().front()))
      readNarrow(&op);
    simplify(program);
  }

private:
  mt::ProgramOp program;
  Type half;
  llvm::SetVector<Value> chosen;
  llvm::MapVector<Value, SmallVector<Value, 1>> ofGradient; // the values whose complete gradient a value is

  void takeCompleteGradients();
  bool isRounded(Value value);
  bool isOfRounded(Value gradient);
  Value wholeGradient(Value part);
  void chooseGradients();
  void chooseOperands(Operation *op);
  bool isStored(Value result);
  bool findSources(Value value, llvm::SetVector<Value> &seen, llvm::SetVector<Value> &sources);
  Value withBias(Value result);
  Value wholeSum(Value term);
  Value cast(OpBuilder &builder, Value value, Type element) {
    return mt::CastOp::create(builder, value.getLoc(), tensorOf(value).clone(element), value);
  }
  void round(Value value);
  void readNarrow(Operation *op);
  void readAllNarrow(Operation *op);
};

// Collects the sources of a value, through ops that only move elements. Returns false if a source is an input, a
// variable or a constant.
bool Rounding::findSources(Value value, llvm::SetVector<Value> &seen, llvm::SetVector<Value> &sources) {
  if (!seen.insert(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op->hasTrait<mt::Moves>())
    return sources.insert(value), !isGiven(value);
  return llvm::all_of(op->getOperands(), [&](Value operand) { return findSources(operand, seen, sources); });
}

void Rounding::chooseOperands(Operation *op) {
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    if (!tensorOf(value).getElementType().isF32() || staysFloat32(value.getDefiningOp()))
      continue;
    llvm::SetVector<Value> seen, sources;
    if (findSources(value, seen, sources)) {
      chosen.insert_range(sources);
      continue;
    }
    // Rounds for this reader alone. But a slice of a matrix for a block of classes is taken of the rounded matrix,
    // which the products of the other blocks read too.
    OpBuilder builder(op);
    auto slice = mt::turnOf(op) ? value.getDefiningOp<mt::SliceOp>() : mt::SliceOp();
    if (!slice) {
      operand.set(cast(builder, value, half));
      continue;
    }
    builder.setInsertionPointAfterValue(slice.getOperand());
    Value narrow = cast(builder, slice.getOperand(), half);
    builder.setInsertionPoint(op);
    operand.set(
        mt::SliceOp::create(builder, slice.getLoc(), narrow, slice.getStarts(), slice.getSizes(), slice.getStrides()));
  }
}

// Weight gradients, which are sums over the batch, stay f32. So do products of single samples that only a sum reads.
bool Rounding::isStored(Value result) {
  return mt::isSplit(result.getType()) && !(result.hasOneUse() && isa<mt::ReduceOp>(*result.user_begin()));
}

// The result plus a bias: rounding follows the addition of the bias.
Value Rounding::withBias(Value result) {
  auto add = result.hasOneUse() ? dyn_cast<mt::AddOp>(*result.user_begin()) : mt::AddOp();
  if (!add || add.getType() != result.getType())
    return result;
  Value other = add.getLhs() == result ? add.getRhs() : add.getLhs();
  return mt::isSplit(other.getType()) ? result : add.getResult();
}

// Whether the value is a product of a block of classes, or a sum of products of blocks.
static bool isSumOfBlocks(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto add = dyn_cast<mt::AddOp>(op))
    return isSumOfBlocks(add.getLhs()) && isSumOfBlocks(add.getRhs());
  return isa<mt::MatmulOp>(op) && mt::turnOf(op);
}

// The complete sum over blocks of classes of which `term` is a term: rounding follows the last addition.
Value Rounding::wholeSum(Value term) {
  while (term.hasOneUse() && isa<mt::AddOp>(*term.user_begin()) && isSumOfBlocks((*term.user_begin())->getResult(0)))
    term = (*term.user_begin())->getResult(0);
  return term;
}

void Rounding::takeCompleteGradients() {
  for (auto op : llvm::make_early_inc_range(program.getBody().front().getOps<mt::CompleteGradientOp>())) {
    ofGradient[op.getGradient()].push_back(op.getValue());
    op.erase();
  }
}

// Whether all elements of a value are 16-bit numbers: it is rounded, or moved from values that are.
bool Rounding::isRounded(Value value) {
  llvm::SetVector<Value> seen, sources;
  return findSources(value, seen, sources) &&
         llvm::all_of(sources, [&](Value source) { return chosen.contains(source); });
}

// Whether a value is the complete gradient of a value that is rounded.
bool Rounding::isOfRounded(Value gradient) {
  auto found = ofGradient.find(gradient);
  return found != ofGradient.end() && llvm::any_of(found->second, [&](Value value) { return isRounded(value); });
}

// The complete gradient of a rounded value of which `part` is a part: rounding follows the last addition.
Value Rounding::wholeGradient(Value part) {
  for (Value sum = part; !isOfRounded(sum);) {
    auto add = sum.hasOneUse() ? dyn_cast<mt::AddOp>(*sum.user_begin()) : mt::AddOp();
    if (!add || add.getType() != part.getType())
      return part;
    sum = add.getResult();
    if (isOfRounded(sum))
      return sum;
  }
  return part;
}

// The values are of the forward pass, which comes first, so all of them are chosen by now.
void Rounding::chooseGradients() {
  for (auto &[gradient, values] : ofGradient)
    if (isOfRounded(gradient) && tensorOf(gradient).getElementType().isF32() &&
        !staysFloat32(gradient.getDefiningOp()) && !isGiven(gradient) && !isRounded(gradient))
      chosen.insert(gradient);
}

void Rounding::round(Value value) {
  if (value.use_empty())
    return;
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  if (roundsResult(value.getDefiningOp())) {
    value.setType(tensorOf(value).clone(half));
    Value wide = cast(builder, value, builder.getF32Type());
    return value.replaceAllUsesExcept(wide, wide.getDefiningOp());
  }
  Value narrow = cast(builder, value, half), wide = cast(builder, narrow, builder.getF32Type());
  value.replaceAllUsesExcept(wide, narrow.getDefiningOp());
}

void Rounding::readAllNarrow(Operation *op) {
  OpBuilder builder(op);
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    if (!tensorOf(value).getElementType().isF32() || staysFloat32(value.getDefiningOp()))
      continue;
    Value narrow = truncatedOf(value);
    operand.set(narrow ? narrow : cast(builder, value, half));
  }
}

// Makes ops that move elements move the 16-bit values, and ops that extend their operands read the 16-bit values.
void Rounding::readNarrow(Operation *op) {
  if (op->hasTrait<mt::SameFloats>() && !isKept(op))
    return readAllNarrow(op);
  if (op->hasTrait<mt::Extends>()) {
    for (OpOperand &operand : op->getOpOperands())
      if (Value narrow = truncatedOf(operand.get()))
        operand.set(narrow);
    return;
  }
  auto pad = dyn_cast<mt::PadOp>(op);
  if (!op->hasTrait<mt::Moves>() || (pad && !pad.getValue().isZero()) ||
      !llvm::all_of(op->getOperands(), [](Value operand) { return bool(truncatedOf(operand)); }))
    return;
  for (OpOperand &operand : op->getOpOperands())
    operand.set(truncatedOf(operand.get()));
  Value result = op->getResult(0);
  result.setType(tensorOf(result).clone(half));
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Value wide = cast(builder, result, builder.getF32Type());
  result.replaceAllUsesExcept(wide, wide.getDefiningOp());
}

struct Precision : impl::PrecisionBase<Precision> {
  using PrecisionBase::PrecisionBase;

  void runOnOperation() override {
    mt::Compilation compilation(getOperation());
    if (!compilation.isHalf())
      return;
    bool isBf16 = compilation.getPrecision() == "bf16";
    Type half = isBf16 ? Type(BFloat16Type::get(&getContext())) : Float16Type::get(&getContext());
    for (auto program : getOperation().getOps<mt::ProgramOp>())
      Rounding(program, half).run();
  }
};
} // namespace
} // namespace mtc
