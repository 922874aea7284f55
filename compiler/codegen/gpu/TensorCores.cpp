// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/gpu/TensorCores.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mtc;

static Emitter::Values multiply(Emitter &emit, ValueRange a, ValueRange b, ValueRange sums, int64_t depth,
                                NVVM::MMATypes type) {
  auto result = LLVM::LLVMStructType::getLiteral(emit.getContext(), SmallVector<Type>(4, emit.getF32Type()));
  Value product =
      NVVM::MmaOp::create(emit, result, a, b, sums, ArrayRef<int64_t>{16, 8, depth}, std::nullopt, std::nullopt,
                          std::array{type, type}, std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  Emitter::Values next;
  for (int64_t i = 0; i < 4; ++i)
    next.push_back(LLVM::ExtractValueOp::create(emit, product, i));
  return next;
}

Emitter::Values mtc::multiplyHalves(Emitter &emit, Type half, ValueRange a, ValueRange b, ValueRange sums) {
  if (half.isBF16())
    return multiply(emit, a, b, sums, 16, NVVM::MMATypes::bf16);
  auto pairs = [&](ValueRange words) {
    Emitter::Values made;
    for (Value word : words)
      made.push_back(LLVM::BitcastOp::create(emit, VectorType::get({2}, emit.getF16Type()), word));
    return made;
  };
  return multiply(emit, pairs(a), pairs(b), sums, 16, NVVM::MMATypes::f16);
}

Emitter::Values mtc::multiplySingles(Emitter &emit, ValueRange a, ValueRange b, ValueRange sums) {
  return multiply(emit, a, b, sums, 8, NVVM::MMATypes::tf32);
}

static Value inSpace(Emitter &emit, Value pointer, unsigned space) {
  return LLVM::AddrSpaceCastOp::create(emit, LLVM::LLVMPointerType::get(emit.getContext(), space), pointer);
}
constexpr unsigned deviceSpace = 1, workgroupSpace = 3; // of NVPTX

Emitter::Values mtc::loadMatrices(Emitter &emit, Value address, int64_t count, bool transposed) {
  Type i32 = emit.getI32Type();
  Type type = count == 1 ? i32 : LLVM::LLVMStructType::getLiteral(emit.getContext(), SmallVector<Type>(count, i32));
  auto layout = transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row;
  Value loaded =
      NVVM::LdMatrixOp::create(emit, type, inSpace(emit, address, workgroupSpace), static_cast<uint32_t>(count), layout,
                               NVVM::LdStMatrixShapeAttr::get(emit.getContext(), 8, 8), NVVM::LdStMatrixEltType::B16);
  if (count == 1)
    return {loaded};
  Emitter::Values words;
  for (int64_t i = 0; i < count; ++i)
    words.push_back(LLVM::ExtractValueOp::create(emit, loaded, i));
  return words;
}

void mtc::copyAsync(Emitter &emit, Value to, Value from, Value there, int64_t bytes) {
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(emit, emit.getI32IntegerAttr(static_cast<int32_t>(value)));
  };
  Value size = arith::SelectOp::create(emit, there, number(bytes), number(0));
  // 16 bytes go past the L1 cache; less cannot.
  auto cache = bytes == 16 ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA;
  NVVM::CpAsyncOp::create(emit, inSpace(emit, to, workgroupSpace), inSpace(emit, from, deviceSpace),
                          static_cast<uint32_t>(bytes), cache, size);
}

void mtc::commitCopies(Emitter &emit) { NVVM::CpAsyncCommitGroupOp::create(emit); }
void mtc::awaitCopies(Emitter &emit, int64_t pending) {
  NVVM::CpAsyncWaitGroupOp::create(emit, static_cast<uint32_t>(pending));
}

Value mtc::packHalves(Emitter &emit, Type half, Value low, Value high) {
  Type type = VectorType::get({2}, half);
  Value packed;
  if (half.isBF16())
    packed = NVVM::ConvertF32x2ToBF16x2Op::create(emit, type, high, low, Value(), NVVM::FPRoundingMode::RN);
  else
    packed = NVVM::ConvertF32x2ToF16x2Op::create(emit, type, high, low, Value(), NVVM::FPRoundingMode::RN);
  return LLVM::BitcastOp::create(emit, emit.getI32Type(), packed);
}

Value mtc::approximateExp2(Emitter &emit, Value a) {
  return LLVM::CallIntrinsicOp::create(emit, emit.getF32Type(), emit.getStringAttr(approximateExp2Name), ValueRange(a))
      .getResults();
}
