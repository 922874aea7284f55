// SPDX-License-Identifier: Apache-2.0
//
// Emits plan.kernels as gpu.funcs.
#include "compiler/codegen/KernelKinds.h"
#include "compiler/codegen/gpu/CallKernels.h"
#include "compiler/codegen/gpu/Gpu.h"
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "compiler/codegen/gpu/TileSums.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/KernelKinds.h"
#include "dialects/mt/Tails.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "runtime/abi/gpu_kernel.h"
#include "runtime/abi/kernel_symbol.h"

using namespace mlir;
using namespace mtc;

static bool usesRows(plan::KernelOp op) {
  bool split = false;
  for (Operation &inner : op.getBody().front())
    split |= llvm::any_of(inner.getOperands(), isSplit) || llvm::any_of(inner.getResults(), isSplit);
  return split;
}

// Number of tiles of a kernel that is not elementwise.
static Value tilesOf(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  if (!kernel.gpu.rowsPerTile)
    return emit.integer(kernel.gpu.innerTiles);
  return emit.mul(emit.ceilDiv(kernel.rows(), kernel.gpu.rowsPerTile), kernel.gpu.innerTiles);
}

// Whether the tile of the block exists.
static Value isThere(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  if (kernel.gpu.elementsPerTile)
    return emit.less(emit.mul(kernel.tile, kernel.gpu.elementsPerTile), kernel.elements);
  Value there = emit.less(kernel.tile, tilesOf(kernel));
  // Sums over the batch ask for the rows when they have loaded their pointers.
  bool asks = usesRows(kernel.op) && kernel.op.getKind() != mt::KernelKind::reduce;
  return asks ? both(emit, there, emit.less(emit.integer(0), kernel.rows())) : there;
}

// Whether the code depends on the unit that computes products.
static bool usesUnit(plan::KernelOp op) {
  mt::KernelKind kind = op.getKind();
  return mt::infoOf(kind).isProduct || kind == mt::KernelKind::attention || kind == mt::KernelKind::attention_gradient;
}

static constexpr int64_t ownBuffers = 3; // of a kernel that is not a plan.kernel

// Emits a kernel into a gpu.func, and adds the workgroup memory to its grid. `own`: emits the body of a kernel that is
// not a plan.kernel.
static LogicalResult emitKernel(BlockKernel &kernel, StringRef name, void (*own)(BlockKernel &) = nullptr,
                                ArrayRef<Tail> tails = {}) {
  Emitter &emit = kernel.emit;
  OpBuilder::InsertionGuard guard(emit);
  emit.setInsertionPointToEnd(emit.home);
  auto memoryOf = [&](int64_t bytes) {
    auto space = gpu::AddressSpaceAttr::get(emit.getContext(), gpu::AddressSpace::Workgroup);
    return MemRefType::get({bytes}, emit.getI8Type(), MemRefLayoutAttrInterface(), space);
  };
  auto type = FunctionType::get(emit.getContext(), {emit.pointer(), emit.pointer()}, {});
  auto function = gpu::GPUFuncOp::create(emit, name, type, TypeRange(memoryOf(0)), TypeRange());
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), emit.getUnitAttr());
  if (!own && usesUnit(kernel.op))
    function->setAttr(ofUnitName, emit.getUnitAttr());
  function->setAttr("known_block_size", emit.getDenseI32ArrayAttr({static_cast<int32_t>(kernel.gpu.threads), 1, 1}));
  Block &entry = function.getBody().front();
  emit.setInsertionPointToStart(&entry);
  auto number = [&](Value index) { return arith::IndexCastOp::create(emit, emit.getI64Type(), index); };
  kernel.params = entry.getArgument(0);
  kernel.thread = number(gpu::ThreadIdOp::create(emit, gpu::Dimension::x));
  kernel.tile = number(gpu::BlockIdOp::create(emit, gpu::Dimension::x));
  kernel.segment = number(gpu::BlockIdOp::create(emit, gpu::Dimension::y));
  int64_t buffers = own ? ownBuffers : buffersOf(kernel.op);
  for (const Tail &tail : tails)
    buffers += buffersOf(tail.op);
  Value segment = emit.address(entry.getArgument(1), emit.getI64Type(), emit.mul(kernel.segment, 1 + buffers));
  kernel.elements = emit.loadInteger(segment, 0);
  kernel.buffers = emit.address(segment, emit.pointer(), 1);
  kernel.memory =
      UnrealizedConversionCastOp::create(emit, TypeRange(emit.pointer()), entry.getArgument(2)).getResult(0);
  kernel.loadedRows = kernel.rows();
  if (own)
    kernel.bindOwnPointers(ownBuffers);
  else
    kernel.bindPointers();
  LogicalResult status = success();
  emit.when(isThere(kernel), [&] {
    Value thread = kernel.thread;
    if (own)
      own(kernel);
    else
      status = codeOf(kernel.op).emitGpu(kernel);
    kernel.warp = Value(); // all threads of the block work on the tail
    kernel.thread = thread;
    if (!tails.empty() && !tails.front().isNumbers() && succeeded(status))
      status = emitTails(kernel, tails, tilesOf(kernel));
  });
  if (!tails.empty() && tails.front().isNumbers() && succeeded(status))
    status = emitNumbers(kernel, tails.front());
  gpu::ReturnOp::create(emit);
  if (kernel.residentBlocks)
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      emit.getI32IntegerAttr(static_cast<int32_t>(kernel.residentBlocks)));
  entry.getArgument(2).setType(memoryOf(kernel.gpu.sharedBytes));
  if (succeeded(status) && !kernel.warpgroups && kernel.gpu.sharedBytes > maxSharedBytes)
    return kernel.op.emitError("expected a kernel of at most ")
           << maxSharedBytes << " bytes of workgroup memory for a GPU, found @" << name << " with "
           << kernel.gpu.sharedBytes;
  return status;
}

static constexpr GpuGrid sumGrid{elementwiseThreads, 0, 1, elementwiseTile};

static plan::GpuGridAttr attributeOf(MLIRContext *context, const GpuGrid &grid) {
  return plan::GpuGridAttr::get(context, grid.threads, grid.rowsPerTile, grid.innerTiles, grid.elementsPerTile,
                                grid.sharedBytes, grid.partialBytes);
}

plan::GpuGridAttr mtc::sumGpuGrid(MLIRContext *context) { return attributeOf(context, sumGrid); }

// Emits the kernels that accompany library calls, if a kernel has a kind for which a library may be called.
static LogicalResult emitCallKernels(Emitter &emit, ModuleOp normal, const CodegenOptions &options) {
  plan::KernelOp any;
  for (auto op : normal.getOps<plan::KernelOp>())
    if (mt::infoOf(op.getKind()).isProduct)
      any = op;
  if (!any)
    return success();
  auto make = [&](StringRef name, int64_t perTile, void (*body)(BlockKernel &)) {
    BlockKernel kernel({emit, any, mt::KernelKind::elementwise, {}, options.shardRows, /*fast=*/false, {}, {}, {}, {}},
                       {elementwiseThreads, 0, 1, perTile, 0});
    return emitKernel(kernel, name, body);
  };
  return success(succeeded(make(MT_GPU_CLEAR_ROWS, elementwiseTile, emitClearRows)) &&
                 succeeded(make(MT_GPU_SUM_SHARDS, elementwiseThreads, emitSumShards)) &&
                 succeeded(make(MT_GPU_TRANSPOSE, 1, emitTransposeTiles)));
}

namespace {
// The tail of a kernel; and the only result of the kernel that it reads, as which argument. -1: none, several, or not
// the same in all launches.
struct Behind {
  plan::KernelOp tail;
  int64_t result = -1, argument = -1;
};
using TailsOf = llvm::DenseMap<Operation *, Behind>;
} // namespace

static Behind behindOf(plan::LaunchOp head, plan::LaunchOp launch, plan::KernelOp tail) {
  Behind found{tail};
  for (auto [i, read] : llvm::enumerate(launch.getReads()))
    if (auto it = llvm::find(head.getWrites(), read); it != head.getWrites().end()) {
      if (found.result >= 0)
        return {tail};
      found.result = it - head.getWrites().begin();
      found.argument = static_cast<int64_t>(i);
    }
  return found;
}

// The kernels with tails. `alone`: the kernels that are launched by themselves too, as the first tail is where a
// library computes its head.
static TailsOf findTails(ModuleOp module, llvm::SmallPtrSetImpl<Operation *> &alone) {
  SymbolTable symbols(module);
  TailsOf tails;
  for (auto program : module.getOps<plan::ProgramOp>()) {
    plan::LaunchOp head; // of a launch that is a tail: the launch before it, which may be one too
    for (auto launch : program.getBody().front().getOps<plan::LaunchOp>()) {
      auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
      bool isTail = head && mt::isTail(launch);
      auto before = isTail ? symbols.lookup<plan::KernelOp>(head.getKernel()) : plan::KernelOp();
      if (isTail) {
        Behind behind = behindOf(head, launch, kernel);
        auto [it, isNew] = tails.try_emplace(before, behind);
        if (!isNew && (it->second.result != behind.result || it->second.argument != behind.argument))
          it->second.result = -1;
      }
      if (!isTail || before.getLibraryCallAttr())
        alone.insert(kernel);
      head = launch;
    }
  }
  return tails;
}

FailureOr<OwningOpRef<ModuleOp>> mtc::emitGpuKernels(const NormalModule &whole, const CodegenOptions &options,
                                                     MatrixUnit unit, bool unitAlone) {
  ModuleOp normal = *whole.module;
  bool reduced = mt::Compilation(normal).getPrecision() != "f32";
  OwningOpRef<ModuleOp> code(ModuleOp::create(normal.getLoc()));
  Emitter emit(*code, VectorUnit{});
  emit.setInsertionPointToEnd(code->getBody());
  (*code)->setAttr(gpu::GPUDialect::getContainerModuleAttrName(), emit.getUnitAttr());
  auto module = gpu::GPUModuleOp::create(emit, "kernels");
  emit.home = module.getBody();
  llvm::SmallPtrSet<Operation *, 32> alone, behindOthers;
  TailsOf tails = findTails(normal, alone);
  for (auto &[head, behind] : tails)
    behindOthers.insert(behind.tail);
  for (auto op : normal.getOps<plan::KernelOp>()) {
    if (unitAlone && !usesUnit(op))
      continue;
    emit.setLoc(op.getLoc());
    GpuGrid grid = codeOf(op).gpuGrid(op, options.shardRows);
    SmallVector<Tail> behind;
    for (plan::KernelOp tail = tails.lookup(op).tail; tail; tail = tails.lookup(tail).tail)
      behind.push_back({tail, whole.forms.at(tail)});
    std::optional<TileSums> sums;
    if (Behind first = tails.lookup(op); first.result >= 0)
      sums = tileSumsOf(op, behind.front(), first.argument, first.result, grid, options.shardRows);
    if (sums)
      grid.partialBytes = sums->partialBytes(options.shardRows * mt::Compilation(normal).getShards());
    if (!behind.empty() && !behind.front().isNumbers()) // the memory's counters alone are used
      grid.partialBytes = std::max<int64_t>(grid.partialBytes, sizeof(float));
    const LineForm &form = whole.forms.at(op);
    grid.innerTiles *= form.lines;
    BlockKernel kernel({emit, op, op.getKind(), {}, options.shardRows, options.fast, {}, {}, {}, {}, form}, grid);
    kernel.sums = sums ? &*sums : nullptr;
    if (usesUnit(op)) {
      kernel.precision = !reduced ? Precision::f32 : unit == MatrixUnit::fma ? Precision::reduced : Precision::tensor;
      kernel.warpgroups = unit == MatrixUnit::wgmma;
    }
    bool inHead = behindOthers.contains(op) && !alone.contains(op); // its code is that of the head's end alone
    auto body = inHead ? +[](BlockKernel &) {} : nullptr;
    if (failed(emitKernel(kernel, mtrun::kernelSymbol(op.getSymName()), body, body ? ArrayRef<Tail>() : behind)))
      return failure();
    op.setGpuGridAttr(attributeOf(op.getContext(), kernel.gpu));
  }
  if (unitAlone)
    return code;
  BlockKernel sum({emit, {}, mt::KernelKind::elementwise, {}, 1, false, {}, {}, {}, {}}, sumGrid);
  if (failed(emitKernel(sum, mtrun::sumKernelName, emitBlockSum)) || failed(emitCallKernels(emit, normal, options)))
    return failure();
  return code;
}
