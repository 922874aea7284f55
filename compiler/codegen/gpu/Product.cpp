// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/gpu/Product.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "compiler/codegen/gpu/TensorCores.h"

using namespace mlir;
using namespace mtc;

// Steps of k in the body of the inner loop: docs/gpu-code.md, "Products". Tiles of few sums per thread have few warps,
// so each has all loads of a panel on their way.
constexpr int64_t stepsOfLargeTiles = 2;

Value mtc::loadChunk(Emitter &emit, Type element, Value address, int64_t count) {
  Type stored = emit.stored(element), type = count == 1 ? stored : Type(VectorType::get({count}, stored));
  return emit.extend(element, LLVM::LoadOp::create(emit, type, address, emit.bytes(element) * count));
}

void mtc::storeChunk(Emitter &emit, ValueRange values, Value address) {
  if (values.size() == 1)
    return emit.store(values[0], address);
  Value vector =
      LLVM::PoisonOp::create(emit, VectorType::get({static_cast<int64_t>(values.size())}, values[0].getType()));
  for (auto [i, value] : llvm::enumerate(values)) {
    Value at = arith::ConstantOp::create(emit, emit.getI32IntegerAttr(static_cast<int32_t>(i)));
    vector = LLVM::InsertElementOp::create(emit, vector, value, at);
  }
  LLVM::StoreOp::create(emit, vector, address, 4 * values.size());
}

// Whether wgmma takes such a tile.
static bool isWarpgroupTile(const BlockKernel &kernel, const ProductTile &tile, Type element) {
  return kernel.warpgroups && kernel.precision == Precision::tensor && Emitter::isHalf(element) &&
         tile.rows % warpgroupLines == 0 && tile.columns % warpgroupLines == 0;
}
bool ProductBlock::isByWarpgroup() const { return isWarpgroupTile(kernel, tile, element); }

ProductTile mtc::withDepth(const BlockKernel &kernel, ProductTile tile, Type element) {
  if (kernel.precision == Precision::tensor)
    tile.depth = (isWarpgroupTile(kernel, tile, element) ? warpgroupRowBytes : panelRowBytes) / Emitter::bytes(element);
  return tile;
}

ProductBlock::ProductBlock(BlockKernel &kernel, const ProductTile &tile, Type element)
    : kernel(kernel), emit(kernel.emit), tile(tile), element(element) {
  int64_t panels = isTensor() ? stages() * stageBytes() : 2 * 4 * panel();
  int64_t staged = 4 * stagedStride() * tile.rows / passes();
  memory = kernel.allocateShared(emit.getI8Type(), std::max(panels, staged));
  if (isTensor()) {
    divideAmongWarps();
    return;
  }
  int64_t across = tile.columns / tile.perColumn;
  row = emit.mul(emit.div(kernel.thread, emit.integer(across)), together(tile.perRow));
  column = emit.mul(emit.rem(kernel.thread, emit.integer(across)), together(tile.perColumn));
}

Emitter::Values ProductBlock::zeros() { return Emitter::Values(count(), emit.zeros(emit.getF32Type())); }

// Line and k of the thread's chunk of this number.
std::pair<Value, Value> ProductBlock::chunkPosition(const ProductSide &side, bool left, int64_t number) {
  int64_t along = (side.deep ? tile.depth : lines(left)) / side.chunk;
  Value index = emit.add(kernel.thread, number * tile.threads());
  Value inner = emit.mul(emit.rem(index, emit.integer(along)), side.chunk),
        outer = emit.div(index, emit.integer(along));
  if (side.deep)
    return {outer, inner};
  return {inner, outer};
}

ProductBlock::Kept ProductBlock::prepare(const ProductSide &side, bool left) {
  Kept kept;
  for (int64_t i = 0, end = chunks(side, left); i < end; ++i) {
    auto [line, k] = chunkPosition(side, left, i);
    kept.push_back(side.prepare(line, k));
  }
  return kept;
}

Emitter::Values ProductBlock::load(const ProductSide &side, const Kept &kept, ValueRange position) {
  Emitter::Values loaded;
  for (const Emitter::Values &chunk : kept) {
    auto [address, there] = side.locate(chunk, position);
    loaded.push_back(orZero(emit, there, loadChunk(emit, side.element, address, side.chunk)));
  }
  return loaded;
}

Value ProductBlock::hasChunk(const ProductSide &side, bool left, int64_t number) {
  int64_t all = lines(left) * tile.depth / side.chunk, first = number * tile.threads();
  if (first + tile.threads() <= all)
    return {};
  return emit.less(emit.add(kernel.thread, first), emit.integer(all));
}

void ProductBlock::store(const ProductSide &side, bool left, ValueRange loaded, Value panels) {
  Type f32 = emit.getF32Type();
  for (auto [i, chunk] : llvm::enumerate(loaded)) {
    auto [line, k] = chunkPosition(side, left, static_cast<int64_t>(i));
    Value to = emit.address(panels, f32, emit.add(emit.mul(k, stride(left)), line)), taken = chunk;
    auto put = [&] {
      Emitter::Values elements;
      for (int64_t j = 0; j < side.chunk; ++j)
        elements.push_back(side.chunk == 1 ? taken : emit.extract(taken, j));
      if (!side.deep)
        return storeChunk(emit, elements, to);
      for (auto [j, element] : llvm::enumerate(elements))
        emit.store(element, emit.address(to, f32, static_cast<int64_t>(j) * stride(left)));
    };
    if (Value mine = hasChunk(side, left, static_cast<int64_t>(i)))
      emit.when(mine, put);
    else
      put();
  }
}

// Panels that are on their way to registers while one is multiplied. Tiles of many sums per thread have no registers
// for more than one, and work enough to wait for it.
int64_t ProductBlock::panelsAhead() const { return count() <= 32 ? 3 : 1; }

// The thread's elements of one k of a panel.
Emitter::Values ProductBlock::fragment(Value panels, int64_t each, int64_t threads) {
  Emitter::Values elements;
  for (int64_t i = 0; i < each; i += together(each)) {
    Value chunk = loadChunk(emit, emit.getF32Type(), emit.address(panels, emit.getF32Type(), offset(i, each, threads)),
                            together(each));
    for (int64_t j = 0; j < together(each); ++j)
      elements.push_back(together(each) == 1 ? chunk : emit.extract(chunk, j));
  }
  return elements;
}

Emitter::Values ProductBlock::multiply(Value panels, ValueRange sums) {
  Type f32 = emit.getF32Type();
  int64_t down = tile.rows / tile.perRow, across = tile.columns / tile.perColumn;
  int64_t stepsAtOnce = count() <= 16 ? tile.depth : stepsOfLargeTiles;
  return emit.loop(emit.integer(0), emit.integer(tile.depth), stepsAtOnce, sums, [&](Value k, ValueRange carried) {
    Emitter::Values next(carried);
    Value left = emit.address(panels, f32, emit.add(emit.mul(k, stride(true)), row));
    Value right = emit.address(panels, f32, emit.add(emit.mul(k, stride(false)), column), tile.depth * stride(true));
    for (int64_t step = 0; step < stepsAtOnce; ++step) {
      Emitter::Values a = fragment(emit.address(left, f32, step * stride(true)), tile.perRow, down);
      Emitter::Values b = fragment(emit.address(right, f32, step * stride(false)), tile.perColumn, across);
      for (auto [index, sum] : llvm::enumerate(next))
        sum = emit.fma(a[index / tile.perColumn], b[index % tile.perColumn], sum);
    }
    return next;
  });
}

Emitter::Values ProductBlock::add(const ProductSide &left, const ProductSide &right, const ProductPanels &panels,
                                  ValueRange sums) {
  if (isTensor())
    return addPieces(left, right, panels, sums);
  Type f32 = emit.getF32Type();
  Kept keptLeft = prepare(left, true), keptRight = prepare(right, false);
  // What a thread loads of both sides; the left side's come first.
  auto fetch = [&](ValueRange position) {
    Emitter::Values loaded = load(left, keptLeft, position);
    loaded.append(load(right, keptRight, position));
    return loaded;
  };
  auto put = [&](ValueRange loaded, Value panels) {
    store(left, true, loaded.take_front(keptLeft.size()), panels);
    store(right, false, loaded.drop_front(keptLeft.size()), emit.address(panels, f32, tile.depth * stride(true)));
    kernel.barrier();
  };
  Emitter::Values position(panels.first), waiting = fetch(position);
  put(waiting, memory);
  size_t each = waiting.size();
  waiting.clear();
  for (int64_t i = 1; i < panelsAhead(); ++i)
    waiting.append(fetch(position = panels.following(position)));
  Emitter::Values carried(sums);
  carried.push_back(emit.integer(0));
  carried.append(waiting);
  carried.append(position);
  Emitter::Values results = emit.loop(emit.integer(0), panels.count, 1, carried, [&](Value, ValueRange now) {
    Value current = now[count()], other = emit.sub(emit.integer(panel()), current);
    Emitter::Values position = panels.following(now.drop_front(count() + 1 + waiting.size()));
    Emitter::Values loaded(now.slice(count() + 1, waiting.size()));
    loaded.append(fetch(position));
    Emitter::Values next = multiply(emit.address(memory, f32, current), now.take_front(count()));
    put(ValueRange(loaded).take_front(each), emit.address(memory, f32, other));
    next.push_back(other);
    next.append(loaded.begin() + static_cast<ptrdiff_t>(each), loaded.end());
    next.append(position);
    return next;
  });
  results.resize(count());
  return results;
}

// Puts sums of rows [firstRow, firstRow + rows) of the tile into workgroup memory.
void ProductBlock::stage(ValueRange sums, int64_t firstRow, int64_t rows) {
  if (isTensor())
    return stagePieces(sums, firstRow, rows);
  Type f32 = emit.getF32Type();
  int64_t down = tile.rows / tile.perRow, across = tile.columns / tile.perColumn;
  for (int64_t i = firstRow / down; i < (firstRow + rows) / down; ++i) {
    Value line = emit.add(row, offset(i, tile.perRow, down) - firstRow);
    Value to = emit.address(memory, f32, emit.add(emit.mul(line, stagedStride()), column));
    for (int64_t j = 0; j < tile.perColumn; j += together(tile.perColumn))
      storeChunk(emit, sums.slice(i * tile.perColumn + j, together(tile.perColumn)),
                 emit.address(to, f32, offset(j, tile.perColumn, across)));
  }
}

// With tensor cores a warp stores eight rows at once: the padding puts them into other banks.
int64_t ProductBlock::stagedStride() const { return tile.columns + (isTensor() ? 8 : 0); }
int64_t ProductBlock::stagedBytes() const {
  return isByWarpgroup() ? stages() * stageBytes() : maxStagedBytes + (isTensor() ? 4 * 8 * tile.rows : 0);
}
int64_t ProductBlock::passes() const { return ceilDiv(4 * tile.rows * stagedStride(), stagedBytes()); }

void ProductBlock::finish(ValueRange sums, int64_t together, llvm::function_ref<void(Value, Value, ValueRange)> each) {
  Type f32 = emit.getF32Type();
  int64_t rows = tile.rows / passes();
  for (int64_t firstRow = 0; firstRow < tile.rows; firstRow += rows) {
    if (firstRow)
      kernel.barrier();
    stage(sums, firstRow, rows);
    kernel.barrier();
    int64_t across = tile.columns / together;
    kernel.forThreads(rows * across, [&](Value index) {
      Value line = emit.div(index, emit.integer(across)), column = emit.rem(index, emit.integer(across));
      column = emit.mul(column, together);
      Value chunk =
          loadChunk(emit, f32, emit.address(memory, f32, emit.add(emit.mul(line, stagedStride()), column)), together);
      Emitter::Values elements;
      for (int64_t i = 0; i < together; ++i)
        elements.push_back(together == 1 ? chunk : emit.extract(chunk, i));
      each(emit.add(line, firstRow), column, elements);
    });
  }
}

Value mtc::orZero(Emitter &emit, Value there, Value value) {
  return arith::SelectOp::create(emit, there, value, emit.zeros(value.getType()));
}

// Small buffers may lie anywhere; others begin on a boundary of 64 bytes.
int64_t mtc::chunkOf(const BlockKernel &kernel, Value operand, int64_t run) {
  int64_t each = Emitter::bytes(elementOf(operand)), bytes = each * innerCount(operand);
  if (!isSplit(operand) && bytes < 64)
    return 1;
  if (kernel.precision != Precision::tensor)
    return run % chunkElements == 0 ? chunkElements : 1;
  int64_t chunk = maxAccessBytes / each;
  while (run % chunk != 0)
    chunk /= 2;
  return chunk;
}

// What is not there is read from an address that is, and dropped: loads have no branches.
ProductSide mtc::matrixAcross(BlockKernel &kernel, Value matrix, int64_t width, Lines lines, Value end) {
  Emitter &emit = kernel.emit;
  Type element = elementOf(matrix);
  Value base = kernel.argument(cast<BlockArgument>(matrix).getArgNumber());
  int64_t chunk = chunkOf(kernel, matrix, width);
  auto prepare = [&emit, element, base, lines](Value line, Value k) -> Emitter::Values {
    Value row = emit.add(lines.first, line), there = emit.less(row, lines.end);
    return {emit.address(base, element, orZero(emit, there, row)), there, k};
  };
  auto locate = [&emit, element, width, end](ValueRange kept, ValueRange position) -> ProductSide::Chunk {
    Value k = emit.add(position[0], kept[2]), before = emit.less(k, end);
    return {emit.address(kept[0], element, emit.mul(orZero(emit, before, k), width)), both(emit, kept[1], before)};
  };
  return {/*deep=*/false, chunk, element, prepare, locate};
}

ProductSide mtc::matrixAlong(BlockKernel &kernel, Value matrix, int64_t depth, Lines lines) {
  Emitter &emit = kernel.emit;
  Type element = elementOf(matrix);
  Value base = kernel.argument(cast<BlockArgument>(matrix).getArgNumber());
  int64_t chunk = chunkOf(kernel, matrix, depth);
  auto prepare = [&emit, element, base, depth, lines](Value line, Value k) -> Emitter::Values {
    Value row = emit.add(lines.first, line), there = emit.less(row, lines.end);
    return {emit.address(base, element, emit.mul(orZero(emit, there, row), depth)), there, k};
  };
  auto locate = [&emit, element, depth](ValueRange kept, ValueRange position) -> ProductSide::Chunk {
    Value k = emit.add(position[0], kept[2]), before = emit.less(k, emit.integer(depth));
    return {emit.address(kept[0], element, orZero(emit, before, k)), both(emit, kept[1], before)};
  };
  return {/*deep=*/true, chunk, element, prepare, locate};
}

ProductPanels mtc::panelsOf(Emitter &emit, const ProductTile &tile, Value from, Value to) {
  int64_t depth = tile.depth;
  auto following = [&emit, depth](ValueRange position) -> Emitter::Values { return {emit.add(position[0], depth)}; };
  return {emit.ceilDiv(emit.sub(to, from), depth), {from}, following};
}
