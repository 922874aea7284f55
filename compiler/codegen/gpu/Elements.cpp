// SPDX-License-Identifier: Apache-2.0
//
// Emits elements where they are needed; and rows kernels whose results are computed in this way, with tiles of elements
// instead of rows.
#include "compiler/codegen/gpu/Elements.h"
#include "compiler/codegen/common/Statements.h"
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/Sizes.h"
#include <map>

using namespace mlir;
using namespace mtc;

Reach mtc::reachOf(Operation *op) {
  if (isa<mt::WindowOpInterface, mt::WindowGradientOpInterface>(op))
    return Reach::window;
  if (auto lookup = dyn_cast<mt::LookupOpInterface>(op))
    return lookup.getLookup().adds ? Reach::line : Reach::element;
  bool element = isa<mt::ElementwiseOpInterface, mt::MoveOpInterface>(op) || op->hasTrait<mt::Repeats>() ||
                 op->hasTrait<mt::Generates>() || op->getNumOperands() == 0;
  return element ? Reach::element : Reach::line;
}

// Whether the adjacent elements are channels with the same windows.
static bool hasWindows(Operation *op, int64_t vectorWidth) {
  return reachOf(op) == Reach::window && innerShape(op->getResult(0)).back() % vectorWidth == 0;
}

bool mtc::isComputable(Value value, llvm::function_ref<bool(Value)> kept, bool products) {
  // Each value, with whether a window reads it.
  SmallVector<std::pair<Value, bool>> wanted{{value, false}};
  DenseMap<Value, bool> seen;
  auto want = [&](Value operand, bool inWindow) {
    auto [it, isNew] = seen.try_emplace(operand, inWindow);
    if (!isNew && (it->second || !inWindow))
      return;
    it->second = inWindow;
    wanted.push_back({operand, inWindow});
  };
  while (!wanted.empty()) {
    auto [next, inWindow] = wanted.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!op || (kept && next != value && kept(next)))
      continue;
    Reach reach = products && isa<mt::MatmulOp>(op) ? Reach::window : reachOf(op);
    if (reach == Reach::line || (reach == Reach::window && inWindow))
      return false;
    for (Value operand : op->getOperands())
      want(operand, inWindow || reach == Reach::window);
  }
  return true;
}

Value BlockElements::addressIn(BlockArgument argument, Value base, Value local) {
  if (!isSplit(argument))
    return base;
  Value index = kernel.form.lines == 1 ? local : partAt(emit, kernel.form.arguments[argument.getArgNumber()], local);
  return emit.address(base, elementOf(argument), emit.mul(index, innerCount(argument)));
}

void BlockElements::bindRow(Value local) {
  if (kernel.hasManyArguments())
    lateRow = local;
  else
    for (auto [i, argument] : llvm::enumerate(kernel.body().getArguments()))
      bind(argument, addressIn(argument, kernel.argument(i), local));
  setRow(emit.add(emit.mul(kernel.firstRow(), kernel.form.lines), local));
}

Value BlockElements::memoryOf(Value root) {
  if (Value bound = pointers.lookup(root))
    return bound;
  auto argument = cast<BlockArgument>(root);
  Value base = kernel.pointer(emit.integer(argument.getArgNumber()), !isSplit(root) && innerCount(root) == 1);
  return addressIn(argument, base, lateRow);
}

Value BlockElements::elementOfIota(mt::IotaOp iota, Value index) {
  Value root = iota.getResult(), position = row;
  if (!isSplit(root)) {
    int64_t inner = 1, size = tensorOf(root).getDimSize(iota.getDim());
    for (int64_t dim : tensorOf(root).getShape().drop_front(iota.getDim() + 1))
      inner *= dim;
    position = emit.rem(emit.div(index, emit.integer(inner)), emit.integer(size));
  }
  Value number = arith::TruncIOp::create(emit, emit.getI32Type(), position);
  return elementOf(root).isF32() ? Value(arith::SIToFPOp::create(emit, emit.getF32Type(), number)) : number;
}

// An element of a value that is not computed from its operands' elements at the same index; null for any other value.
Value BlockElements::sourceOf(Position position, Value value) {
  Value root = resolve(value);
  Type element = elementOf(root);
  int64_t count = innerCount(root);
  if (Value scalar = scalars.lookup(root))
    return scalar;
  if (position.chunk)
    if (auto known = position.chunk->elements.find(root); known != position.chunk->elements.end())
      return known->second[position.lane];
  if (isInMemory(root)) {
    if (position.chunk && count > 1 && count == position.count)
      return loadedOf(position, root);
    Value memory = memoryOf(root);
    return emit.load(element, count == 1 ? memory : emit.address(memory, element, position.index));
  }
  Operation *op = root.getDefiningOp();
  if (auto constant = dyn_cast<mt::ConstantOp>(op)) {
    auto values = cast<DenseElementsAttr>(constant.getValue());
    if (values.isSplat())
      return Value();
    return emit.load(element, emit.address(constantPointer(emit, constant), element, position.index));
  }
  if (count == 1 && position.count > 1)
    return at(root, emit.integer(0));
  if (auto iota = dyn_cast<mt::IotaOp>(op))
    return elementOfIota(iota, position.index);
  if (auto random = dyn_cast<mt::RandomUniformOp>(op)) {
    Value number = isSplit(root) ? emit.add(emit.mul(row, count), position.index) : position.index;
    auto scalarOf = [&](Value operand) { return at(operand, emit.integer(0)); };
    return emitUniform(kernel, random, number, scalarOf, /*scalar=*/true);
  }
  bool repeats = isa<mt::BroadcastOp>(op) && innerCount(op->getOperand(0)) == 1;
  if (repeats || isa<mt::ElementwiseOpInterface, mt::BatchSizeOp>(op))
    return Value();
  if (position.period && periodOf(root) == position.period)
    return at(op->getOperand(0), position.inner);
  if (position.chunk && hasWindows(op, position.chunk->vectorWidth) && count == position.count)
    return inWindow(position, op);
  return moved(op, position.index);
}

void BlockElements::unknown(Value value) {
  known = kernel.op.emitError("expected operations that kernels of rows can compute on a GPU, found ") << value;
}

// Buffers, rows and lines whose size is a multiple of `vectorWidth` elements are aligned to that many elements
// (Block.cpp).
Value BlockElements::loadedOf(const Position &position, Value root) {
  Chunk &chunk = *position.chunk;
  Value &elements = chunk.loaded[root];
  if (!elements) {
    OpBuilder::InsertionGuard guard(emit);
    emit.setInsertionPointAfter(chunk.before);
    Type element = elementOf(root), type = VectorType::get({chunk.vectorWidth}, emit.stored(element));
    Value address = emit.address(memoryOf(root), element, chunk.first);
    elements = emit.extend(element, LLVM::LoadOp::create(emit, type, address, chunk.vectorWidth * emit.bytes(element)));
  }
  return emit.extract(elements, position.lane);
}

Emitter::Values BlockElements::adjacent(Value value, Value first, int64_t vectorWidth) {
  if (vectorWidth == 1)
    return {at(value, first)};
  Chunk chunk = chunkAt(first, vectorWidth);
  Emitter::Values elements;
  for (int64_t lane = 0; lane < vectorWidth; ++lane)
    elements.push_back(
        at(ArrayRef(value), Position{emit.add(first, lane), innerCount(value), {}, 0, &chunk, lane}).front());
  return elements;
}

void BlockElements::storeYields(ArrayRef<Value> yields, ArrayRef<Value> results, Value first, int64_t vectorWidth) {
  Chunk chunk = chunkAt(first, vectorWidth);
  storeYields(yields, results, chunk);
}

void BlockElements::storeYields(ArrayRef<Value> yields, ArrayRef<Value> results, Chunk &chunk) {
  SmallVector<BlockStore> stores;
  for (int64_t lane = 0; lane < chunk.vectorWidth; ++lane) {
    Position position{emit.add(chunk.first, lane), innerCount(yields.front())};
    if (chunk.vectorWidth > 1) {
      position.chunk = &chunk;
      position.lane = lane;
    }
    for (auto [yield, value, to] : llvm::zip_equal(yields, at(yields, position), results))
      stores.push_back({elementOf(yield), value, emit.address(to, elementOf(yield), position.index)});
  }
  storeAdjacent(stores, chunk.vectorWidth);
}

Emitter::Values BlockElements::at(ArrayRef<Value> values, Value index) {
  return at(values, Position{index, innerCount(values.front())});
}

Emitter::Values BlockElements::at(ArrayRef<Value> values, Position position) {
  VectorBody body = bodyAt(position);
  Emitter::Values computed;
  for (Value value : values) {
    computed.push_back(body.get(value));
    if (computed.back())
      continue;
    unknown(value);
    computed.back() = emit.zeros(elementOf(value));
  }
  return computed;
}

bool mtc::isElements(plan::KernelOp op) {
  bool rows = op.getKind() == mt::KernelKind::rows;
  if (!rows && op.getKind() != mt::KernelKind::single)
    return false;
  OperandRange yields = op.getBody().front().getTerminator()->getOperands();
  // Single numbers of a kernel without rows are computed once.
  if (!rows && llvm::all_of(yields, [](Value yield) { return innerCount(yield) == 1; }))
    return false;
  return llvm::all_of(yields, [rows](Value yield) { return isSplit(yield) == rows && isComputable(yield); });
}

// Emits the elements of results with equal row sizes, for rows `first` to `end` of a tile, or for a part of one row.
static LogicalResult emitYields(BlockKernel &kernel, ArrayRef<int64_t> yields, Value first, Value end) {
  Emitter &emit = kernel.emit;
  LogicalResult status = success();
  SmallVector<Value> values;
  for (int64_t i : yields)
    values.push_back(kernel.yields()[i]);
  mt::WindowGradientOpInterface gradient = gradientByCells(kernel.op);
  int64_t inner = innerCount(values.front());
  int64_t count = gradient ? ShapedType::getNumElements(cellsOf(gradient.getPooling())) : inner;
  // A thread computes several adjacent elements, which share the loops over windows.
  static_assert(elementTile == elementwiseThreads * elementsPerThread);
  bool isSimple = llvm::all_of(kernel.body().without_terminator(), [](Operation &op) {
    return reachOf(&op) == Reach::element || hasWindows(&op, elementsPerThread);
  });
  int64_t vectorWidth = isSimple && count % elementsPerThread == 0 ? elementsPerThread : 1;
  auto elements = [&](Value local, Value index) {
    BlockElements row(kernel);
    row.bindRow(local);
    SmallVector<Value> results;
    for (int64_t i : yields)
      results.push_back(emit.address(kernel.result(i), elementOf(kernel.yields()[i]), emit.mul(local, inner)));
    if (gradient)
      row.storeCell(gradient, values, results, index);
    else
      row.storeYields(values, results, index, vectorWidth);
    if (failed(row.status()))
      status = failure();
  };
  bool wholeRows = kernel.gpu.rowsPerTile && kernel.gpu.innerTiles == 1;
  Value from =
      wholeRows ? emit.integer(0) : emit.mul(emit.rem(kernel.tile, emit.integer(kernel.gpu.innerTiles)), elementTile);
  Value to =
      wholeRows ? emit.mul(emit.sub(end, first), count) : emit.min(emit.add(from, elementTile), emit.integer(count));
  auto at = [&](Value index) {
    Emitter::Values split{emit.integer(0), index};
    if (wholeRows)
      split = coordinates(emit, index, {kernel.gpu.rowsPerTile, count});
    elements(emit.add(first, split[0]), split[1]);
  };
  if (vectorWidth == 1) {
    kernel.forThreads(from, to, at);
  } else {
    Value index = emit.add(from, emit.mul(kernel.thread, vectorWidth));
    emit.when(emit.less(index, to), [&] { at(index); });
  }
  return status;
}

LogicalResult mtc::emitBlockElements(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  Value first = emit.integer(0), end = emit.integer(1); // a kernel without rows counts as one row
  if (kernel.gpu.rowsPerTile) {
    first = emit.mul(emit.div(kernel.tile, emit.integer(kernel.gpu.innerTiles)), kernel.gpu.rowsPerTile);
    end = emit.min(emit.add(first, kernel.gpu.rowsPerTile), kernel.rows());
  }
  std::map<int64_t, SmallVector<int64_t>> sizes;
  for (auto [i, yield] : llvm::enumerate(kernel.yields()))
    sizes[innerCount(yield)].push_back(i);
  for (auto &[count, yields] : sizes)
    if (failed(emitYields(kernel, yields, first, end)))
      return failure();
  return success();
}
