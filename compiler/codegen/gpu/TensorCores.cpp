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
constexpr unsigned deviceSpace = 1, workgroupSpace = 3; // address spaces of NVPTX

static WarpgroupForm formOf(const WarpgroupProduct &product) {
  // Matrix descriptors (PTX ISA, wgmma, matrix descriptor) are in units of 16 bytes. Bits from 16 on: distance of 64
  // rows if the side is `across`. Bits from 32 on: distance of 8 rows. Bit 62: swizzle of 128 bytes.
  constexpr int64_t rowBytes = 128, unit = 16;
  int64_t lines = product.depth * rowBytes;
  auto low = [&](bool across) { return (across ? lines / unit : 1) << 16; };
  auto step = [&](bool across) { return across ? 16 * rowBytes : int64_t(32); };
  return {product.rows / warpgroupLines,
          product.columns,
          product.depth / 16,
          low(product.leftAcross),
          low(product.rightAcross),
          (int64_t(1) << 30) | 8 * rowBytes / unit,
          step(product.leftAcross),
          step(product.rightAcross),
          product.leftAcross ? lines : warpgroupLines * rowBytes,
          product.leftAcross,
          product.rightAcross,
          product.half.isBF16()};
}

static std::string textOf(const WarpgroupForm &form) {
  int64_t each = form.columns / 2, all = form.blocks * each; // number of sums for 64 rows, and for all
  auto operand = [](int64_t number) { return "$" + std::to_string(number); };
  auto text = [](auto number) { return std::to_string(number); };
  std::string code = "{\n.reg .b32 address;\n.reg .b64 left, right, a, b;\n";
  for (auto [name, low, number] : {std::tuple("left", form.leftLow, 2 * all), {"right", form.rightLow, 2 * all + 1}})
    code += "cvt.u32.u64 address, " + operand(number) + ";\nshr.u32 address, address, 4;\nor.b32 address, address, " +
            text(low) + ";\nmov.b64 " + name + ", {address, " + text(form.high) + "};\n";
  code += "wgmma.fence.sync.aligned;\n";
  const char *type = form.isBf16 ? ".bf16.bf16 {" : ".f16.f16 {";
  for (int64_t block = 0; block < form.blocks; ++block)
    for (int64_t step = 0; step < form.steps; ++step) {
      code += "add.s64 a, left, " + text((block * form.block + step * form.leftStep) / 16) + ";\nadd.s64 b, right, " +
              text(step * form.rightStep / 16) + ";\nwgmma.mma_async.sync.aligned.m64n" + text(form.columns) +
              "k16.f32" + type;
      for (int64_t i = 0; i < each; ++i)
        code += (i ? ", " : "") + operand(block * each + i);
      code += "}, a, b, 1, 1, 1, " + text(form.leftAcross) + ", " + text(form.rightAcross) + ";\n";
    }
  return code + "wgmma.commit_group.sync.aligned;\n}";
}

static LLVM::InlineAsmOp assembly(Emitter &emit, Type type, ValueRange operands, const std::string &text,
                                  const std::string &constraints) {
  return LLVM::InlineAsmOp::create(emit, type, operands, text, constraints, /*has_side_effects=*/true,
                                   /*is_align_stack=*/false, LLVM::TailCallKind::None, LLVM::AsmDialectAttr(),
                                   ArrayAttr());
}

// Inline assembly that changes the sums in their registers, and takes more operands.
static LLVM::InlineAsmOp assemblyOn(Emitter &emit, ValueRange sums, ValueRange more, const std::string &text) {
  SmallVector<Value> operands(sums);
  operands.append(more.begin(), more.end());
  std::string constraints;
  for (size_t i = 0; i < sums.size(); ++i)
    constraints += "=f,";
  for (size_t i = 0; i < sums.size(); ++i)
    constraints += std::to_string(i) + ",";
  for (size_t i = 0; i < more.size(); ++i)
    constraints += "l,";
  auto type = LLVM::LLVMStructType::getLiteral(emit.getContext(), SmallVector<Type>(sums.size(), emit.getF32Type()));
  return assembly(emit, type, operands, text, constraints + "~{memory}");
}

static Emitter::Values partsOf(Emitter &emit, LLVM::InlineAsmOp made, size_t count) {
  Emitter::Values parts;
  for (size_t i = 0; i < count; ++i)
    parts.push_back(LLVM::ExtractValueOp::create(emit, made.getResult(0), static_cast<int64_t>(i)));
  return parts;
}

Emitter::Values mtc::startByWarpgroup(Emitter &emit, const WarpgroupProduct &product, Value left, Value right,
                                      ValueRange sums) {
  WarpgroupForm form = formOf(product);
  auto made =
      assemblyOn(emit, sums, {inSpace(emit, left, workgroupSpace), inSpace(emit, right, workgroupSpace)}, textOf(form));
  made->setAttr(WarpgroupForm::name,
                emit.getDenseI64ArrayAttr({form.blocks, form.columns, form.steps, form.leftLow, form.rightLow,
                                           form.high, form.leftStep, form.rightStep, form.block, form.leftAcross,
                                           form.rightAcross, form.isBf16}));
  return partsOf(emit, made, sums.size());
}

Emitter::Values mtc::awaitWarpgroup(Emitter &emit, ValueRange sums) {
  return partsOf(emit, assemblyOn(emit, sums, {}, "wgmma.wait_group.sync.aligned 0;"), sums.size());
}

void mtc::showToWarpgroups(Emitter &emit) { assembly(emit, {}, {}, "fence.proxy.async.shared::cta;", "~{memory}"); }

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
  // A copy of 16 bytes can bypass the L1 cache; smaller ones cannot.
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
