// SPDX-License-Identifier: Apache-2.0
//
// Lowers kernels to llvm.funcs, with nvvm ops instead of gpu ops.
#include "compiler/codegen/gpu/Gpu.h"
#include "compiler/codegen/gpu/GpuTarget.h"
#include "compiler/codegen/gpu/Lowering.h"
#include "compiler/codegen/gpu/TensorCores.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mtc;

namespace {
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
    // The launch allocates workgroup memory that is larger than the static limit. wgmma needs an alignment of 1024
    // bytes.
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
  if (auto warpBarrier = dyn_cast<NVVM::SyncWarpOp>(op))
    return lowering.warpBarrier(warpBarrier);
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

static LLVM::LLVMFuncOp lowerFunction(gpu::GPUFuncOp from, OpBuilder &builder, Lowering &lowering) {
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
  return made;
}

// Adds the tables and functions to which `op` refers, unless the part has them already.
static void addReferred(Operation *op, SymbolTable &kernels, ModuleOp part) {
  std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(op);
  for (SymbolTable::SymbolUse use : *uses) {
    Operation *referred = kernels.lookup(use.getSymbolRef().getLeafReference());
    if (!referred || part.lookupSymbol(use.getSymbolRef()))
      continue;
    part.push_back(referred->clone());
    addReferred(referred, kernels, part);
  }
}

KernelModules mtc::lowerKernels(ModuleOp kernels, llvm::function_ref<std::unique_ptr<Lowering>()> lowering,
                                llvm::function_ref<bool(gpu::GPUFuncOp)> isWanted) {
  auto device = *kernels.getOps<gpu::GPUModuleOp>().begin();
  SymbolTable symbols(device);
  KernelModules parts;
  constexpr int64_t opsOfPart = 2500; // with fewer, the code that every part repeats would cost more
  int64_t ops = opsOfPart;
  for (auto function : device.getOps<gpu::GPUFuncOp>()) {
    if (!isWanted(function))
      continue;
    if (ops >= opsOfPart) {
      parts.push_back(ModuleOp::create(kernels.getLoc()));
      ops = 0;
    }
    ModuleOp part = *parts.back();
    OpBuilder builder = OpBuilder::atBlockEnd(part.getBody());
    addReferred(lowerFunction(function, builder, *lowering()), symbols, part);
    function.walk([&](Operation *) { ++ops; });
  }
  return parts;
}

KernelModules mtc::lowerToNvvm(ModuleOp kernels, bool ofUnit) {
  return lowerKernels(
      kernels, [] { return std::make_unique<NvvmLowering>(); },
      [&](gpu::GPUFuncOp function) { return function->hasAttr(ofUnitName) == ofUnit; });
}
