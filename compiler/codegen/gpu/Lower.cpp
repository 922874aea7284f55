// SPDX-License-Identifier: Apache-2.0
//
// The two lowerings of kernels: gpu ops as nvvm ops, or as fields and calls of mt_sim_thread.
#include "compiler/codegen/common/Emitter.h"
#include "compiler/codegen/gpu/Gpu.h"
#include "compiler/codegen/gpu/GpuTarget.h"
#include "compiler/codegen/gpu/TensorCores.h"
#include "dialects/mt/VectorExpr.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mtc;

namespace {
// What stands in place of the gpu ops of one kernel.
class Lowering {
public:
  virtual ~Lowering() = default;
  // Arguments after params and segments.
  virtual SmallVector<Type> arguments(OpBuilder &builder) { return {}; }
  virtual void begin(LLVM::LLVMFuncOp function, gpu::GPUFuncOp from) = 0;
  // An i32.
  virtual Value threadId(ImplicitLocOpBuilder &builder) = 0;
  virtual Value blockId(ImplicitLocOpBuilder &builder, gpu::Dimension dimension) = 0;
  virtual Value memory(ImplicitLocOpBuilder &builder, MemRefType type) = 0;
  virtual void barrier(ImplicitLocOpBuilder &builder) = 0;
  virtual void cast(LLVM::AddrSpaceCastOp op) {}
  virtual void assume(LLVM::AssumeOp op) {}
  virtual void access(Operation *op, Value address, Type type, std::optional<uint64_t> alignment) {}
  virtual void multiply(NVVM::MmaOp op) {}
  virtual void assembly(LLVM::InlineAsmOp op) {}
  virtual void loadMatrices(NVVM::LdMatrixOp op) {}
  virtual void copy(NVVM::CpAsyncOp op) {}
  virtual void orderCopies(Operation *op) {}
  virtual void round(NVVM::ConvertFloatToTF32Op op) {}
  virtual void shuffle(NVVM::ShflOp op) {}
  virtual void vote(NVVM::VoteSyncOp op) {}
  virtual void meet(NVVM::SyncWarpOp op) {}
  virtual void pack(Operation *op, Type half) {}
  virtual void approximateExp2(LLVM::CallIntrinsicOp op) {}
};

class NvvmLowering : public Lowering {
public:
  void begin(LLVM::LLVMFuncOp made, gpu::GPUFuncOp from) override {
    function = made;
    Builder builder(made.getContext());
    made->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), builder.getUnitAttr());
    made->setAttr(NVVM::NVVMDialect::getReqntidAttrName(), from->getAttr("known_block_size"));
    if (Attribute blocks = from->getAttr(NVVM::NVVMDialect::getMinctasmAttrName()))
      made->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), blocks);
  }
  Value threadId(ImplicitLocOpBuilder &builder) override {
    return NVVM::ThreadIdXOp::create(builder, builder.getI32Type());
  }
  Value blockId(ImplicitLocOpBuilder &builder, gpu::Dimension dimension) override {
    if (dimension == gpu::Dimension::x)
      return NVVM::BlockIdXOp::create(builder, builder.getI32Type());
    return NVVM::BlockIdYOp::create(builder, builder.getI32Type());
  }
  Value memory(ImplicitLocOpBuilder &builder, MemRefType type) override {
    // More than what every GPU gives is given by the launch. wgmma counts from multiples of 1024 bytes.
    bool given = type.getDimSize(0) > maxSharedBytes;
    auto array = LLVM::LLVMArrayType::get(type.getElementType(), given ? 0 : type.getDimSize(0));
    int64_t alignment = type.getDimSize(0) < 1024 ? 16 : 1024;
    LLVM::GlobalOp global;
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(function);
      auto linkage = given ? LLVM::Linkage::External : LLVM::Linkage::Internal;
      global = LLVM::GlobalOp::create(builder, array, /*isConstant=*/false, linkage,
                                      ("shared_" + function.getSymName()).str(), Attribute(), alignment,
                                      /*addrSpace=*/3);
    }
    Value address = LLVM::AddressOfOp::create(builder, global);
    return LLVM::AddrSpaceCastOp::create(builder, LLVM::LLVMPointerType::get(builder.getContext()), address);
  }
  void barrier(ImplicitLocOpBuilder &builder) override { NVVM::Barrier0Op::create(builder); }
  void assembly(LLVM::InlineAsmOp op) override { op->removeAttr(WarpgroupForm::name); }

private:
  LLVM::LLVMFuncOp function;
};

// Fields of mt_sim_thread, by bytes.
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
  // The host has one kind of memory.
  void cast(LLVM::AddrSpaceCastOp op) override {
    if (auto inner = op.getArg().getDefiningOp<LLVM::AddrSpaceCastOp>())
      op.replaceAllUsesWith(inner.getArg());
  }
  // What NVPTX builds on: adjacent elements of a buffer that begins there become one access.
  void assume(LLVM::AssumeOp op) override {
    ImplicitLocOpBuilder builder(op.getLoc(), op);
    APInt alignment;
    OperandRange bundle = op.getOpBundleOperands().front();
    if (matchPattern(bundle[1], m_ConstantInt(&alignment)))
      checkAddress(builder, bundle[0], alignment.getZExtValue());
    op.erase();
  }
  // The host has no trap of its own for most of these.
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

  // Ten words in memory: four of the left side, two of the right one, four sums, in whose place the results come.
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
  // The sums in memory, then the numbers of the form. A fence does nothing, nor does a wait for sums.
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
  // At once.
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
  // To the nearest, ties away from zero; what is not finite stays.
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
  // A thread has its own bit, then those of 2, 4 ... 32 threads.
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
  // Each thread gets a number of its own.
  void meet(NVVM::SyncWarpOp op) override {
    ImplicitLocOpBuilder builder(op.getLoc(), op);
    Value zero = LLVM::ConstantOp::create(builder, builder.getI32IntegerAttr(0));
    exchange(builder, zero, zero);
    op.erase();
  }
  // The bits of two numbers that are rounded as others are; `op` takes the higher one first.
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
  // Of a cast between address spaces, which the host has not.
  static Value sourceOf(Value pointer) {
    while (auto cast = pointer.getDefiningOp<LLVM::AddrSpaceCastOp>())
      pointer = cast.getArg();
    return pointer;
  }
  // Words of 32 bits on the stack.
  Value wordsOf(Operation *op, int32_t count) {
    ImplicitLocOpBuilder builder(op->getLoc(), op);
    builder.setInsertionPointToStart(&op->getParentOfType<LLVM::LLVMFuncOp>().getBody().front());
    return LLVM::AllocaOp::create(builder, thread.getType(), builder.getI32Type(), number(builder, count), 16);
  }
  Value wordAt(ImplicitLocOpBuilder &builder, Value words, int32_t index) {
    return LLVM::GEPOp::create(builder, thread.getType(), builder.getI32Type(), words, ArrayRef<LLVM::GEPArg>{index});
  }
  // The function in the field at `byte`, of the thread and more.
  void call(ImplicitLocOpBuilder &builder, int32_t byte, ValueRange more) {
    SmallVector<Value> arguments{field(builder, thread.getType(), byte), thread};
    arguments.append(more.begin(), more.end());
    SmallVector<Type> types;
    for (Value argument : ArrayRef(arguments).drop_front())
      types.push_back(argument.getType());
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), types);
    LLVM::CallOp::create(builder, type, arguments);
  }
  // The op's result is what `count` words hold.
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

static void lowerOp(Operation *op, Lowering &lowering) {
  ImplicitLocOpBuilder builder(op->getLoc(), op);
  auto replaceIndex = [&](Value number) {
    op->replaceAllUsesWith(arith::IndexCastUIOp::create(builder, builder.getIndexType(), number)->getResults());
    op->erase();
  };
  if (isa<gpu::ThreadIdOp>(op))
    return replaceIndex(lowering.threadId(builder));
  if (auto id = dyn_cast<gpu::BlockIdOp>(op))
    return replaceIndex(lowering.blockId(builder, id.getDimension()));
  if (isa<gpu::BarrierOp>(op)) {
    lowering.barrier(builder);
    return op->erase();
  }
  if (isa<gpu::ReturnOp>(op)) {
    LLVM::ReturnOp::create(builder, ValueRange());
    return op->erase();
  }
  if (auto cast = dyn_cast<LLVM::AddrSpaceCastOp>(op))
    return lowering.cast(cast);
  if (auto assume = dyn_cast<LLVM::AssumeOp>(op))
    return lowering.assume(assume);
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    return lowering.access(op, load.getAddr(), load.getType(), load.getAlignment());
  if (auto store = dyn_cast<LLVM::StoreOp>(op))
    return lowering.access(op, store.getAddr(), store.getValue().getType(), store.getAlignment());
  if (auto multiply = dyn_cast<NVVM::MmaOp>(op))
    return lowering.multiply(multiply);
  if (auto assembly = dyn_cast<LLVM::InlineAsmOp>(op))
    return lowering.assembly(assembly);
  if (auto load = dyn_cast<NVVM::LdMatrixOp>(op))
    return lowering.loadMatrices(load);
  if (auto copy = dyn_cast<NVVM::CpAsyncOp>(op))
    return lowering.copy(copy);
  if (isa<NVVM::CpAsyncCommitGroupOp, NVVM::CpAsyncWaitGroupOp>(op))
    return lowering.orderCopies(op);
  if (auto round = dyn_cast<NVVM::ConvertFloatToTF32Op>(op))
    return lowering.round(round);
  if (auto shuffle = dyn_cast<NVVM::ShflOp>(op))
    return lowering.shuffle(shuffle);
  if (auto vote = dyn_cast<NVVM::VoteSyncOp>(op))
    return lowering.vote(vote);
  if (auto meet = dyn_cast<NVVM::SyncWarpOp>(op))
    return lowering.meet(meet);
  if (isa<NVVM::ConvertF32x2ToBF16x2Op, NVVM::ConvertF32x2ToF16x2Op>(op))
    return lowering.pack(op, cast<VectorType>(op->getResult(0).getType()).getElementType());
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op); call && call.getIntrin() == approximateExp2Name)
    return lowering.approximateExp2(call);
  if (auto memory = dyn_cast<UnrealizedConversionCastOp>(op)) {
    auto type = cast<MemRefType>(memory.getOperand(0).getType());
    if (!memory.use_empty())
      memory.getResult(0).replaceAllUsesWith(lowering.memory(builder, type));
    op->erase();
  }
}

static void lowerFunction(gpu::GPUFuncOp from, OpBuilder &builder, Lowering &lowering) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  SmallVector<Type> types{pointer, pointer}, more = lowering.arguments(builder);
  types.append(more);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), types);
  auto made = LLVM::LLVMFuncOp::create(builder, from.getLoc(), from.getName(), type);
  IRMapping mapping;
  from.getBody().cloneInto(&made.getBody(), mapping);
  Block &entry = made.getBody().front();
  for (auto [i, type] : llvm::enumerate(more))
    entry.insertArgument(2 + i, type, from.getLoc());
  lowering.begin(made, from);
  SmallVector<Operation *> operations;
  made.walk([&](Operation *op) { operations.push_back(op); });
  for (Operation *op : operations)
    lowerOp(op, lowering);
  entry.eraseArgument(entry.getNumArguments() - 1);
}

static OwningOpRef<ModuleOp> lowerAll(ModuleOp kernels, llvm::function_ref<std::unique_ptr<Lowering>()> lowering) {
  OwningOpRef<ModuleOp> module(ModuleOp::create(kernels.getLoc()));
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  for (auto device : kernels.getOps<gpu::GPUModuleOp>())
    for (Operation &op : *device.getBody()) {
      if (auto function = dyn_cast<gpu::GPUFuncOp>(op))
        lowerFunction(function, builder, *lowering());
      else if (isa<LLVM::GlobalOp, LLVM::LLVMFuncOp>(op))
        builder.clone(op);
    }
  return module;
}

OwningOpRef<ModuleOp> mtc::lowerToNvvm(ModuleOp kernels) {
  return lowerAll(kernels, [] { return std::make_unique<NvvmLowering>(); });
}
OwningOpRef<ModuleOp> mtc::lowerToSimulated(ModuleOp kernels) {
  return lowerAll(kernels, [] { return std::make_unique<SimulatedLowering>(); });
}
