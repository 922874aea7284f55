// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/gpu/Block.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "runtime/abi/gpu_kernel.h"
#include "llvm/ADT/StringExtras.h"
#include <cstddef>

using namespace mlir;
using namespace mtc;

// Buffers are in device memory, which the two casts state, and aligned to at least 16 bytes unless they hold a single
// number. So accesses of a thread to adjacent elements can be merged.
static Value inDevice(Emitter &emit, Value pointer, bool isNumber = false) {
  Value global =
      LLVM::AddrSpaceCastOp::create(emit, LLVM::LLVMPointerType::get(emit.getContext(), 1), pointer).getResult();
  if (!isNumber) {
    Value holds = arith::ConstantOp::create(emit, emit.getBoolAttr(true));
    LLVM::AssumeOp::create(emit, holds, LLVM::AssumeAlignTag(), global, emit.integer(16));
  }
  return LLVM::AddrSpaceCastOp::create(emit, emit.pointer(), global);
}

Value BlockKernel::pointer(Value index, bool isNumber) {
  return inDevice(emit, emit.loadPointer(emit.address(buffers, emit.pointer(), index), 0), isNumber);
}

Value BlockKernel::pointerKnownHere(Value index, bool isNumber) {
  Value loaded = emit.loadPointer(emit.address(buffers, emit.pointer(), index), 0);
  requireHere(emit, loaded);
  return inDevice(emit, loaded, isNumber);
}

int64_t mtc::buffersOf(plan::KernelOp op) {
  Block &body = op.getBody().front();
  return body.getNumArguments() + body.getTerminator()->getNumOperands();
}

// By assembly without a text.
void mtc::requireHere(Emitter &emit, ValueRange pointers) {
  if (pointers.empty())
    return;
  SmallVector<StringRef> constraints(pointers.size(), "l");
  LLVM::InlineAsmOp::create(emit, TypeRange(), pointers, "", llvm::join(constraints, ","), /*has_side_effects=*/true,
                            /*is_align_stack=*/false, LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
}

void BlockKernel::bindOwnPointers(int64_t count) {
  Emitter::Values loaded;
  for (int64_t i = 0; i < count; ++i)
    loaded.push_back(emit.loadPointer(buffers, i));
  loaded.push_back(rows());
  requireHere(emit, loaded);
  for (Value each : ArrayRef(loaded).drop_back())
    pointers.push_back(inDevice(emit, each));
}

void BlockKernel::bindPointers() {
  if (op.getKind() == mt::KernelKind::reduce)
    return;
  int64_t arguments = body().getNumArguments(), all = buffersOf(op);
  Emitter::Values loaded;
  for (int64_t i = 0; i < arguments && !hasManyArguments(); ++i)
    loaded.push_back(emit.loadPointer(buffers, i));
  requireHere(emit, loaded);
  for (int64_t i = 0; i < all; ++i) {
    Value of = i < arguments ? Value(body().getArgument(i)) : yields()[i - arguments];
    bool isNumber = !isSplit(of) && innerCount(of) == 1;
    if (i < arguments)
      pointers.push_back(hasManyArguments() ? Value() : inDevice(emit, loaded[i], isNumber));
    else
      pointers.push_back(pointer(emit.integer(i), isNumber));
  }
}

bool BlockKernel::hasManyArguments() {
  return op && op.getKind() == mt::KernelKind::rows && body().getNumArguments() > maxBoundArguments;
}

Value BlockKernel::resultLoadedHere(int64_t index) {
  Value yield = yields()[index];
  return pointer(emit.integer(body().getNumArguments() + index), !isSplit(yield) && innerCount(yield) == 1);
}

Value BlockKernel::partials() {
  Value all = inDevice(emit, emit.loadPointer(params, offsetof(mt_kernel_params, partials) / sizeof(void *)));
  return emit.address(all, emit.getI8Type(), emit.mul(segment, gpu.partialBytes));
}
Value BlockKernel::counters() {
  Value all = inDevice(emit, emit.loadPointer(params, offsetof(mt_kernel_params, partials) / sizeof(void *)));
  return emit.address(all, emit.getI32Type(), emit.mul(emit.add(segment, 1), -MT_GPU_COUNTERS));
}

void BlockKernel::splitByWarp() {
  warp = emit.div(thread, emit.integer(warpThreads));
  thread = emit.rem(thread, emit.integer(warpThreads));
}

Value BlockKernel::allocateShared(Type element, int64_t count) {
  Value pointer = emit.address(memory, emit.getI8Type(), gpu.sharedBytes);
  int64_t bytes = (count * emit.bytes(element) + 15) / 16 * 16;
  if (warp)
    pointer = emit.address(pointer, emit.getI8Type(), emit.mul(warp, bytes));
  gpu.sharedBytes += bytes * (gpu.threads / groupThreads());
  return pointer;
}

static Value number(Emitter &emit, int64_t value) {
  return arith::ConstantOp::create(emit, emit.getI32IntegerAttr(static_cast<int32_t>(value)));
}

void BlockKernel::barrier() {
  if (warp)
    warpBarrier();
  else
    mlir::gpu::BarrierOp::create(emit);
}
void BlockKernel::warpBarrier() { NVVM::SyncWarpOp::create(emit, number(emit, -1)); }

Value BlockKernel::shuffle(Value value, int64_t mask) {
  return NVVM::ShflOp::create(emit, value.getType(), number(emit, -1), value, number(emit, mask),
                              number(emit, warpThreads - 1), NVVM::ShflKind::bfly, UnitAttr());
}
Value BlockKernel::ballot(Value condition) {
  return NVVM::VoteSyncOp::create(emit, emit.getI32Type(), number(emit, -1), condition, NVVM::VoteSyncKind::ballot);
}

void BlockKernel::forThreads(Value from, Value to, llvm::function_ref<void(Value)> each) {
  emit.loop(emit.add(from, thread), to, groupThreads(), each);
}
void BlockKernel::forThreads(int64_t count, llvm::function_ref<void(Value)> each) {
  emit.loop(thread, emit.integer(count), groupThreads(), each);
}
Emitter::Values BlockKernel::forThreads(int64_t count, ValueRange carried, Emitter::Body each) {
  return emit.loop(thread, emit.integer(count), groupThreads(), carried, each);
}
void BlockKernel::firstThread(llvm::function_ref<void()> body) { emit.when(emit.equal(thread, emit.integer(0)), body); }

Value mtc::choose(Emitter &emit, Type type, Value condition, llvm::function_ref<Value()> body,
                  llvm::function_ref<Value()> otherwise) {
  auto branch = scf::IfOp::create(emit, TypeRange(type), condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(emit);
  emit.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(emit, otherwise());
  emit.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(emit, body());
  return branch.getResult(0);
}
Value mtc::choose(Emitter &emit, Value condition, llvm::function_ref<Value()> body, Value otherwise) {
  return choose(emit, otherwise.getType(), condition, body, [&] { return otherwise; });
}
Value mtc::both(Emitter &emit, Value a, Value b) { return arith::AndIOp::create(emit, a, b); }

// Uses 32-bit divisions if the tensor is small enough.
Emitter::Values mtc::coordinates(Emitter &emit, Value index, ArrayRef<int64_t> shape) {
  Emitter::Values indices(shape.size());
  if (shape.size() < 2) {
    std::fill(indices.begin(), indices.end(), index);
    return indices;
  }
  bool narrow = ShapedType::getNumElements(shape) <= std::numeric_limits<int32_t>::max();
  Type type = narrow ? emit.getI32Type() : emit.getI64Type();
  auto extended = [&](Value remainder) {
    return narrow ? Value(arith::ExtUIOp::create(emit, emit.getI64Type(), remainder)) : remainder;
  };
  if (narrow)
    index = arith::TruncIOp::create(emit, type, index);
  for (size_t dim = shape.size(); dim-- > 1;) {
    Value size = arith::ConstantOp::create(emit, emit.getIntegerAttr(type, shape[dim]));
    indices[dim] = extended(emit.rem(index, size));
    index = emit.div(index, size);
  }
  indices[0] = extended(index);
  return indices;
}

Value mtc::flatten(Emitter &emit, ValueRange coordinates, ArrayRef<int64_t> shape) {
  Value index = emit.integer(0);
  for (auto [coordinate, size] : llvm::zip_equal(coordinates, shape))
    index = emit.add(emit.mul(index, size), coordinate);
  return index;
}

Value mtc::epilogueOperand(BlockKernel &kernel, Value value, ValueRange coordinates) {
  Emitter &emit = kernel.emit;
  Value base;
  if (auto argument = dyn_cast<BlockArgument>(value))
    base = kernel.argument(argument.getArgNumber());
  else if (auto constant = value.getDefiningOp<mt::ConstantOp>()) {
    auto values = cast<DenseElementsAttr>(constant.getValue());
    if (values.isSplat())
      return Value();
    base = emit.global(values);
  } else {
    return Value();
  }
  RankedTensorType type = tensorOf(value);
  Value index = emit.integer(0);
  for (int64_t dim = 0, rank = type.getRank(); dim < rank; ++dim) {
    int64_t size = type.getDimSize(dim);
    if (size == 1)
      continue;
    Value step = coordinates[coordinates.size() - rank + dim];
    index = emit.add(ShapedType::isDynamic(size) ? index : emit.mul(index, size), step);
  }
  return emit.load(type.getElementType(), emit.address(base, type.getElementType(), index));
}

void mtc::storeAdjacent(Emitter &emit, ArrayRef<BlockStore> stores, int64_t vectorWidth) {
  size_t each = stores.size() / vectorWidth;
  for (size_t i = 0; i < each; ++i) {
    auto [element, value, address] = stores[i];
    if (vectorWidth == 1) {
      emit.store(element, value, address);
      continue;
    }
    Value vector = LLVM::PoisonOp::create(emit, VectorType::get({vectorWidth}, value.getType()));
    for (int64_t lane = 0; lane < vectorWidth; ++lane) {
      Value at = arith::ConstantOp::create(emit, emit.getI32IntegerAttr(static_cast<int32_t>(lane)));
      vector = LLVM::InsertElementOp::create(emit, vector, stores[i + lane * each].value, at);
    }
    LLVM::StoreOp::create(emit, emit.truncate(element, vector), address, vectorWidth * emit.bytes(element));
  }
}

SmallVector<BlockStore> mtc::epilogueStores(BlockKernel &kernel, Value product, ValueRange numbers,
                                            ValueRange coordinates, Value index) {
  Emitter &emit = kernel.emit;
  SmallVector<BlockStore> stores; // all loads precede them, so that adjacent loads can be merged
  for (auto [i, number] : llvm::enumerate(numbers)) {
    Emitter::Values at(coordinates);
    at.back() = emit.add(at.back(), static_cast<int64_t>(i));
    Value element = number;
    VectorBody body(kernel, /*scalar=*/true, [&](Value value) -> Value {
      return value == product ? element : epilogueOperand(kernel, value, at);
    });
    for (auto [j, yield] : llvm::enumerate(kernel.yields())) {
      Value to = emit.address(kernel.result(j), elementOf(yield), index, static_cast<int64_t>(i));
      stores.push_back({elementOf(yield), body.get(yield), to});
    }
  }
  return stores;
}
