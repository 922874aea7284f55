// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/common/Rounding.h"
#include "dialects/mt/VectorExpr.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mtc;

// Whether an f32 is known to be a bf16, because the lower half of its bits is 0: what was loaded as a bf16 or rounded
// to it, and selections of these.
static bool isBF16(Value value) {
  APFloat number(0.0f);
  if (matchPattern(value, m_ConstantFloat(&number)))
    return number.bitcastToAPInt().countr_zero() >= 16;
  if (auto choice = value.getDefiningOp<arith::SelectOp>())
    return isBF16(choice.getTrueValue()) && isBF16(choice.getFalseValue());
  auto cast = value.getDefiningOp<arith::BitcastOp>();
  Operation *bits = cast ? cast.getIn().getDefiningOp() : nullptr;
  APInt operand;
  if (!isa_and_nonnull<arith::ShLIOp, arith::AndIOp>(bits) ||
      !matchPattern(bits->getOperand(1), m_ConstantInt(&operand)))
    return false;
  return isa<arith::ShLIOp>(bits) ? operand == 16 : operand.countr_zero() >= 16;
}

static Value intrinsic(Emitter &emit, StringRef name, Type result, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(emit, result, emit.getStringAttr(name), operands).getResult(0);
}

// The bits of a vector that is rounded to bf16 by VCVTNEPS2BF16. This takes subnormal numbers as zero and keeps bits of
// a NaN, so a vector that has a subnormal number or a NaN, which is rare, is rounded by integer operations.
static Value emitByInstruction(Emitter &emit, Value value, llvm::function_ref<Value()> byIntegers) {
  constexpr int32_t quietNaN = 0x01, subnormal = 0x20, signallingNaN = 0x80;
  Value classes = arith::ConstantOp::create(emit, emit.getI32IntegerAttr(quietNaN | subnormal | signallingNaN));
  Value found =
      intrinsic(emit, "llvm.x86.avx512.fpclass.ps.512", emit.vectorOf(emit.getI1Type()), ValueRange{value, classes});
  Value mask = LLVM::BitcastOp::create(emit, emit.getI16Type(), found);
  Value some = arith::CmpIOp::create(emit, arith::CmpIPredicate::ne, mask, emit.zeros(emit.getI16Type()));
  Type bits = emit.vectorOf(emit.getI16Type());
  auto choice = scf::IfOp::create(emit, TypeRange(bits), some, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(emit);
  emit.setInsertionPointToEnd(choice.thenBlock());
  scf::YieldOp::create(emit, byIntegers());
  emit.setInsertionPointToEnd(choice.elseBlock());
  Value rounded =
      intrinsic(emit, "llvm.x86.avx512bf16.cvtneps2bf16.512", emit.vectorOf(emit.getBF16Type()), ValueRange(value));
  scf::YieldOp::create(emit, LLVM::BitcastOp::create(emit, bits, rounded).getResult());
  return choice.getResult(0);
}

Value mtc::emitRounded(Emitter &emit, Type half, Value value) {
  if (half.isBF16() && isBF16(value))
    return value;
  auto rounded = [&] { return mt::roundTo(mt::VectorExpr(emit, emit.getLoc(), value), half).value(); };
  if (!half.isBF16() || !emit.vectors.dots || value.getType() != VectorType::get({lanes}, emit.getF32Type()))
    return rounded();
  return emit.extend(half, emitByInstruction(emit, value, [&] { return emit.truncate(half, rounded()); }));
}
