// SPDX-License-Identifier: Apache-2.0
//
// Lowers kernels for the host: fields and calls of mt_sim_thread instead of gpu ops and warp operations.
#include "compiler/codegen/gpu/Gpu.h"
#include "compiler/codegen/gpu/GpuTarget.h"
#include "compiler/codegen/gpu/Lowering.h"
#include "compiler/codegen/gpu/TensorCores.h"
#include "dialects/mt/VectorExpr.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mtc;

namespace {
// Offsets of the fields of mt_sim_thread, in bytes.
class SimulatedLowering : public Lowering {
public:
  SmallVector<Type> arguments(OpBuilder &builder) override {
    return {LLVM::LLVMPointerType::get(builder.getContext())};
  }
  void begin(LLVM::LLVMFuncOp made, gpu::GPUFuncOp) override { thread = made.getBody().front().getArgument(2); }
  Value threadId(ImplicitLocOpBuilder &builder) override { return field(builder, builder.getI32Type(), 0); }
  Value blockId(ImplicitLocOpBuilder &builder, gpu::Dimension dimension) override {
    return field(builder, builder.getI32Type(), dimension == gpu::Dimension::x ? 4 : 8);
  }
  Value memory(ImplicitLocOpBuilder &builder, MemRefType) override { return field(builder, thread.getType(), 16); }
  void barrier(ImplicitLocOpBuilder &builder) override {
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), {thread.getType()});
    LLVM::CallOp::create(builder, type, ValueRange{field(builder, thread.getType(), 24), thread});
  }
  // The host has one address space.
  void cast(LLVM::AddrSpaceCastOp op) override {
    if (auto inner = op.getArg().getDefiningOp<LLVM::AddrSpaceCastOp>())
      op.replaceAllUsesWith(inner.getArg());
  }
  // Checks an alignment that NVPTX assumes, in order to merge accesses to adjacent elements.
  void assume(LLVM::AssumeOp op) override {
    ImplicitLocOpBuilder builder(op.getLoc(), op);
    APInt alignment;
    OperandRange bundle = op.getOpBundleOperands().front();
    if (matchPattern(bundle[1], m_ConstantInt(&alignment)))
      checkAddress(builder, bundle[0], alignment.getZExtValue());
    op.erase();
  }
  // Checks the alignment of an access, because the host traps on few of them.
  void access(Operation *op, Value address, Type type, std::optional<uint64_t> alignment) override {
    ImplicitLocOpBuilder builder(op->getLoc(), op);
    uint64_t bytes = 8;
    if (auto vector = dyn_cast<VectorType>(type))
      bytes = vector.getNumElements() * vector.getElementTypeBitWidth() / 8;
    else if (type.isIntOrFloat())
      bytes = type.getIntOrFloatBitWidth() / 8;
    if (bytes >= 8 && alignment.value_or(bytes) >= bytes)
      checkAddress(builder, address, bytes);
  }

  // Ten words in memory: four of the left operand, two of the right operand, four sums, which the results replace.
  void multiply(NVVM::MmaOp op) override {
    ImplicitLocOpBuilder builder(op.getLoc(), op);
    Value words = wordsOf(op, 10);
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      LLVM::StoreOp::create(builder, operand, wordAt(builder, words, static_cast<int32_t>(i)));
    if (op.getShape().getK() == 8) {
      call(builder, 40, {words});
    } else {
      bool isBf16 = op.getMultiplicandAPtxType() == NVVM::MMATypes::bf16;
      call(builder, 56, {words, number(builder, isBf16)});
    }
    replace(builder, op, words, 6, 4, builder.getF32Type());
  }
  // Passes the sums in memory, then the numbers of the form. A fence does nothing, nor does a wait for sums.
  void assembly(LLVM::InlineAsmOp op) override {
    ImplicitLocOpBuilder builder(op.getLoc(), op);
    auto form = op->getAttrOfType<DenseI64ArrayAttr>(WarpgroupForm::name);
    if (!form) {
      for (OpResult result : op->getResults()) {
        Value sums = LLVM::PoisonOp::create(builder, result.getType());
        for (auto [i, sum] : llvm::enumerate(op.getOperands()))
          sums = LLVM::InsertValueOp::create(builder, sums, sum, static_cast<int64_t>(i));
        result.replaceAllUsesWith(sums);
      }
      return op->erase();
    }
    auto count = static_cast<int32_t>(op.getNumOperands() - 2);
    Value words = wordsOf(op, count + static_cast<int32_t>(form.size()));
    for (int32_t i = 0; i < count; ++i)
      LLVM::StoreOp::create(builder, op.getOperand(i), wordAt(builder, words, i));
    for (auto [i, value] : llvm::enumerate(form.asArrayRef()))
      LLVM::StoreOp::create(builder, number(builder, value), wordAt(builder, words, count + static_cast<int32_t>(i)));
    call(builder, 72,
         {sourceOf(op.getOperand(count)), sourceOf(op.getOperand(count + 1)), words, number(builder, count)});
    replace(builder, op, words, 0, count, builder.getF32Type());
  }
  void loadMatrices(NVVM::LdMatrixOp op) override {
    ImplicitLocOpBuilder builder(op.getLoc(), op);
    auto count = static_cast<int32_t>(op.getNum());
    Value words = wordsOf(op, count), row = sourceOf(op.getPtr());
    checkAddress(builder, row, 16);
    call(builder, 64, {row, number(builder, count), number(builder, op.getLayout() == NVVM::MMALayout::col), words});
    replace(builder, op, words, 0, count, builder.getI32Type());
  }
  // Copies immediately.
  void copy(NVVM::CpAsyncOp op) override {
    ImplicitLocOpBuilder builder(op.getLoc(), op);
    auto bytes = static_cast<int64_t>(op.getSize());
    Type type = VectorType::get({bytes / 4}, builder.getI32Type());
    Value to = sourceOf(op.getDst()), from = sourceOf(op.getSrc());
    for (Value address : {to, from})
      checkAddress(builder, address, bytes);
    Value there = LLVM::ICmpOp::create(builder, LLVM::ICmpPredicate::ne, op.getCpSize(), number(builder, 0));
    Value zero = LLVM::ZeroOp::create(builder, type);
    Value taken = LLVM::LoadOp::create(builder, type, from, /*alignment=*/4);
    LLVM::StoreOp::create(builder, LLVM::SelectOp::create(builder, there, taken, zero), to, /*alignment=*/4);
    op.erase();
  }
  void orderCopies(Operation *op) override { op->erase(); }
  // Rounds to nearest, ties away from zero; keeps infinities and NaN.
  void round(NVVM::ConvertFloatToTF32Op op) override {
    ImplicitLocOpBuilder builder(op.getLoc(), op);
    auto constant = [&](int64_t value) { return number(builder, value); };
    Value bits = LLVM::BitcastOp::create(builder, builder.getI32Type(), op.getSrc());
    Value nearest =
        LLVM::AndOp::create(builder, LLVM::AddOp::create(builder, bits, constant(0x1000)), constant(~0x1fff));
    Value exponent = LLVM::AndOp::create(builder, bits, constant(0x7f800000));
    Value finite = LLVM::ICmpOp::create(builder, LLVM::ICmpPredicate::ne, exponent, constant(0x7f800000));
    op.replaceAllUsesWith(LLVM::SelectOp::create(builder, finite, nearest, bits).getResult());
    op.erase();
  }

  void shuffle(NVVM::ShflOp op) override {
    ImplicitLocOpBuilder builder(op.getLoc(), op);
    bool isFloat = op.getType().isF32();
    Value sent = isFloat ? Value(LLVM::BitcastOp::create(builder, builder.getI32Type(), op.getVal())) : op.getVal();
    Value found = exchange(builder, sent, op.getOffset());
    op.replaceAllUsesWith(isFloat ? Value(LLVM::BitcastOp::create(builder, op.getType(), found)) : found);
    op.erase();
  }
  // Starts with the thread's own bit, then combines the bits of 2, 4 ... 32 threads.
  void vote(NVVM::VoteSyncOp op) override {
    ImplicitLocOpBuilder builder(op.getLoc(), op);
    Value lane = LLVM::AndOp::create(builder, threadId(builder), number(builder, warpThreads - 1));
    Value bit = LLVM::ShlOp::create(builder, number(builder, 1), lane);
    Value bits = LLVM::SelectOp::create(builder, op.getPred(), bit, number(builder, 0));
    for (int64_t mask = 1; mask < warpThreads; mask *= 2)
      bits = LLVM::OrOp::create(builder, bits, exchange(builder, bits, number(builder, mask)));
    op.replaceAllUsesWith(bits);
    op.erase();
  }
  // Each thread exchanges a number with itself, which synchronizes the warp.
  void warpBarrier(NVVM::SyncWarpOp op) override {
    ImplicitLocOpBuilder builder(op.getLoc(), op);
    Value zero = LLVM::ConstantOp::create(builder, builder.getI32IntegerAttr(0));
    exchange(builder, zero, zero);
    op.erase();
  }
  // The bits of two numbers, rounded like other casts; the first operand of `op` is the upper half.
  void pack(Operation *op, Type half) override {
    ImplicitLocOpBuilder builder(op->getLoc(), op);
    Value result = LLVM::PoisonOp::create(builder, op->getResult(0).getType());
    for (int64_t i = 0; i < 2; ++i) {
      mt::VectorExpr rounded = mt::roundTo(mt::VectorExpr(builder, op->getLoc(), op->getOperand(1 - i)), half);
      Value narrow;
      if (half.isBF16()) {
        Value bits = LLVM::BitcastOp::create(builder, builder.getI32Type(), rounded.value());
        bits = LLVM::LShrOp::create(builder, bits, number(builder, 16));
        narrow = LLVM::BitcastOp::create(builder, half, LLVM::TruncOp::create(builder, builder.getI16Type(), bits));
      } else {
        narrow = LLVM::FPTruncOp::create(builder, half, rounded.value());
      }
      result = LLVM::InsertElementOp::create(builder, result, narrow, number(builder, i));
    }
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }
  void approximateExp2(LLVM::CallIntrinsicOp op) override {
    ImplicitLocOpBuilder builder(op.getLoc(), op);
    constexpr float ln2 = 0.693147180559945309f;
    mt::VectorExpr a(builder, op.getLoc(), op.getArgs()[0]);
    op->getResult(0).replaceAllUsesWith(mt::exp(a * mt::VectorExpr(ln2)).value());
    op.erase();
  }

private:
  Value thread;
  Value number(ImplicitLocOpBuilder &builder, int64_t value) {
    return LLVM::ConstantOp::create(builder, builder.getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  // The operand of casts between address spaces, which the host does not have.
  static Value sourceOf(Value pointer) {
    while (auto cast = pointer.getDefiningOp<LLVM::AddrSpaceCastOp>())
      pointer = cast.getArg();
    return pointer;
  }
  // Allocates words of 32 bits on the stack.
  Value wordsOf(Operation *op, int32_t count) {
    ImplicitLocOpBuilder builder(op->getLoc(), op);
    builder.setInsertionPointToStart(&op->getParentOfType<LLVM::LLVMFuncOp>().getBody().front());
    return LLVM::AllocaOp::create(builder, thread.getType(), builder.getI32Type(), number(builder, count), 16);
  }
  Value wordAt(ImplicitLocOpBuilder &builder, Value words, int32_t index) {
    return LLVM::GEPOp::create(builder, thread.getType(), builder.getI32Type(), words, ArrayRef<LLVM::GEPArg>{index});
  }
  // Calls the function in the field at offset `byte`, with the thread and more arguments.
  void call(ImplicitLocOpBuilder &builder, int32_t byte, ValueRange more) {
    SmallVector<Value> arguments{field(builder, thread.getType(), byte), thread};
    arguments.append(more.begin(), more.end());
    SmallVector<Type> types;
    for (Value argument : ArrayRef(arguments).drop_front())
      types.push_back(argument.getType());
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), types);
    LLVM::CallOp::create(builder, type, arguments);
  }
  // Replaces the result of the op by the value of `count` words.
  void replace(ImplicitLocOpBuilder &builder, Operation *op, Value words, int32_t first, int32_t count, Type word) {
    Type type = op->getResult(0).getType();
    Value result;
    if (!isa<LLVM::LLVMStructType>(type)) {
      result = LLVM::LoadOp::create(builder, word, wordAt(builder, words, first));
    } else {
      result = LLVM::PoisonOp::create(builder, type);
      for (int32_t i = 0; i < count; ++i) {
        Value taken = LLVM::LoadOp::create(builder, word, wordAt(builder, words, first + i));
        result = LLVM::InsertValueOp::create(builder, result, taken, i);
      }
    }
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }
  Value exchange(ImplicitLocOpBuilder &builder, Value value, Value mask) {
    Type i32 = builder.getI32Type();
    auto type = LLVM::LLVMFunctionType::get(i32, {thread.getType(), i32, i32});
    return LLVM::CallOp::create(builder, type, ValueRange{field(builder, thread.getType(), 32), thread, value, mask})
        .getResult();
  }
  void checkAddress(ImplicitLocOpBuilder &builder, Value address, uint64_t bytes) {
    Type i64 = builder.getI64Type();
    auto number = [&](uint64_t value) -> Value {
      return LLVM::ConstantOp::create(builder, builder.getI64IntegerAttr(static_cast<int64_t>(value)));
    };
    Value integer = LLVM::PtrToIntOp::create(builder, i64, address);
    Value rest = LLVM::AndOp::create(builder, integer, number(bytes - 1));
    auto branch = scf::IfOp::create(builder, LLVM::ICmpOp::create(builder, LLVM::ICmpPredicate::ne, rest, number(0)),
                                    /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    Value size = LLVM::ConstantOp::create(builder, builder.getI32IntegerAttr(static_cast<int32_t>(bytes)));
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()),
                                            {thread.getType(), i64, size.getType()});
    LLVM::CallOp::create(builder, type, ValueRange{field(builder, thread.getType(), 48), thread, integer, size});
  }
  Value field(ImplicitLocOpBuilder &builder, Type type, int32_t byte) {
    Value pointer =
        LLVM::GEPOp::create(builder, thread.getType(), builder.getI8Type(), thread, ArrayRef<LLVM::GEPArg>{byte});
    return LLVM::LoadOp::create(builder, type, pointer);
  }
};
} // namespace

KernelModules mtc::lowerToSimulated(ModuleOp kernels) {
  return lowerKernels(
      kernels, [] { return std::make_unique<SimulatedLowering>(); }, [](gpu::GPUFuncOp) { return true; });
}
