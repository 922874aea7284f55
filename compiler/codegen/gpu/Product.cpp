// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/gpu/Product.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "compiler/codegen/gpu/TensorCores.h"
#include "compiler/codegen/gpu/TileSums.h"

using namespace mlir;
using namespace mtc;

// Positions of k that adjacent threads load from one row: 32 bytes, the granularity of device memory. A warp's stores
// of 16 rows then go to different banks.
constexpr int64_t adjacentDepth = 8;
// A warp's threads along rows and columns of its sums: a nearly square shape reads the fewest words.
constexpr int64_t lanesDown = 4, lanesAcross = 8;

// Loads elements of the type in memory.
static Value loadStored(Emitter &emit, Type element, Value address, int64_t count) {
  Type stored = emit.stored(element), type = count == 1 ? stored : Type(VectorType::get({count}, stored));
  return LLVM::LoadOp::create(emit, type, address, emit.bytes(element) * count);
}

Value mtc::loadChunk(Emitter &emit, Type element, Value address, int64_t count) {
  return emit.extend(element, loadStored(emit, element, address, count));
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

// Whether wgmma supports the tile.
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
  divideAmongThreads();
}

// FMAs: selects the sums of each thread. A 16-byte read by a warp takes half the time if lanes that differ only in the
// lowest bit, or in the next one, read the same address; so one of these bits counts columns and the other rows.
void ProductBlock::divideAmongThreads() {
  Value lane = emit.rem(kernel.thread, emit.integer(warpThreads));
  Value warp = emit.div(kernel.thread, emit.integer(warpThreads));
  auto bits = [&](int64_t divisor, int64_t count) {
    return emit.rem(emit.div(lane, emit.integer(divisor)), emit.integer(count));
  };
  Value inColumns = emit.add(bits(1, 2), emit.mul(bits(4, 4), 2));
  Value inRows = emit.add(bits(2, 2), emit.mul(bits(16, 2), 2));
  Value across = emit.integer(tile.columns / tile.perColumn / lanesAcross);
  Value down = emit.div(warp, across), right = emit.rem(warp, across);
  row = emit.mul(emit.add(emit.mul(down, lanesDown), inRows), vectorWidth(tile.perRow));
  column = emit.mul(emit.add(emit.mul(right, lanesAcross), inColumns), vectorWidth(tile.perColumn));
}

Emitter::Values ProductBlock::zeros() { return Emitter::Values(count(), emit.zeros(emit.getF32Type())); }

// Row and k of the thread's chunk with this number.
std::pair<Value, Value> ProductBlock::chunkPosition(const ProductSide &side, bool left, int64_t number) {
  int64_t depth = isTensor() ? tile.depth : adjacentDepth, along = (side.deep ? depth : lines(left)) / side.chunk;
  Value index = emit.add(kernel.thread, number * tile.threads());
  Value inner = emit.mul(emit.rem(index, emit.integer(along)), side.chunk),
        outer = emit.div(index, emit.integer(along));
  if (!side.deep)
    return {inner, outer};
  if (depth == tile.depth)
    return {outer, inner};
  Value line = emit.rem(outer, emit.integer(lines(left))), before = emit.div(outer, emit.integer(lines(left)));
  return {line, emit.add(emit.mul(before, depth), inner)};
}

ProductBlock::Kept ProductBlock::prepare(const ProductSide &side, bool left) {
  Kept kept;
  for (int64_t i = 0, end = chunks(side, left); i < end; ++i) {
    auto [line, k] = chunkPosition(side, left, i);
    kept.push_back(side.prepare(line, k));
  }
  return kept;
}

// Loads the thread's chunks, with whether each exists. A thread waits for a load only when a computation uses its
// result.
Emitter::Values ProductBlock::fetch(const ProductSide &side, const Kept &kept, ValueRange position) {
  Emitter::Values fetched;
  for (const Emitter::Values &chunk : kept) {
    auto [address, there] = side.locate(chunk, position);
    fetched.append({loadStored(emit, side.element, address, side.chunk), there});
  }
  return fetched;
}

Emitter::Values ProductBlock::arrived(const ProductSide &side, ValueRange fetched) {
  Emitter::Values chunks;
  for (size_t i = 0; i < fetched.size(); i += 2)
    chunks.push_back(orZero(emit, fetched[i + 1], emit.extend(side.element, fetched[i])));
  return chunks;
}

Value ProductBlock::hasChunk(const ProductSide &side, bool left, int64_t number) {
  int64_t all = lines(left) * tile.depth / side.chunk, first = number * tile.threads();
  if (first + tile.threads() <= all)
    return {};
  return emit.less(emit.add(kernel.thread, first), emit.integer(all));
}

void ProductBlock::store(const ProductSide &side, bool left, ValueRange fetched, Value panels) {
  Type f32 = emit.getF32Type();
  for (auto [i, chunk] : llvm::enumerate(arrived(side, fetched))) {
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

// The thread's elements of one k of a panel. The loads are volatile if they are one iteration ahead; otherwise LLVM
// would merge the loads of two iterations at the start of the later one.
Emitter::Values ProductBlock::fragment(Value panels, int64_t each, int64_t threads) {
  Type f32 = emit.getF32Type();
  int64_t count = vectorWidth(each);
  Emitter::Values elements;
  for (int64_t i = 0; i < each; i += count) {
    Value from = emit.address(panels, f32, offset(i, each, threads));
    Type type = count == 1 ? f32 : Type(VectorType::get({count}, f32));
    Value chunk = LLVM::LoadOp::create(emit, type, from, 4 * count, /*isVolatile=*/readsAhead());
    for (int64_t j = 0; j < count; ++j)
      elements.push_back(count == 1 ? chunk : emit.extract(chunk, j));
  }
  return elements;
}

// Fragments of step `step` of an iteration that begins at `k`: of the left side, then of the right side.
Emitter::Values ProductBlock::fragments(Value panels, Value k, int64_t step) {
  Type f32 = emit.getF32Type();
  Value left = emit.address(panels, f32, emit.add(emit.mul(k, stride(true)), row));
  Value right = emit.address(panels, f32, emit.add(emit.mul(k, stride(false)), column), tile.depth * stride(true));
  Emitter::Values elements =
      fragment(emit.address(left, f32, step * stride(true)), tile.perRow, tile.rows / tile.perRow);
  elements.append(
      fragment(emit.address(right, f32, step * stride(false)), tile.perColumn, tile.columns / tile.perColumn));
  return elements;
}

Emitter::Values ProductBlock::multiply(Value panels, ValueRange sums) {
  int64_t steps = stepsAtOnce(), each = tile.perRow + tile.perColumn;
  Emitter::Values carried(sums);
  for (int64_t step = 0; readsAhead() && step < steps; ++step)
    carried.append(fragments(panels, emit.integer(0), step));
  Value depth = emit.integer(tile.depth);
  Emitter::Values results = emit.loop(emit.integer(0), depth, steps, carried, [&](Value k, ValueRange now) {
    Emitter::Values next(now.take_front(count())), ahead;
    Value further = emit.add(k, steps); // in the last iteration, any valid k
    further = arith::SelectOp::create(emit, emit.less(further, depth), further, emit.integer(0));
    for (int64_t step = 0; step < steps; ++step) {
      Emitter::Values elements =
          readsAhead() ? Emitter::Values(now.slice(count() + step * each, each)) : fragments(panels, k, step);
      for (auto [index, sum] : llvm::enumerate(next))
        sum = emit.fma(elements[index / tile.perColumn], elements[tile.perRow + index % tile.perColumn], sum);
      if (readsAhead())
        ahead.append(fragments(panels, further, step));
    }
    next.append(ahead);
    return next;
  });
  results.resize(count());
  return results;
}

Emitter::Values ProductBlock::add(const ProductSide &left, const ProductSide &right, const ProductPanels &panels,
                                  ValueRange sums) {
  if (isTensor())
    return addPieces(left, right, panels, sums);
  Type f32 = emit.getF32Type();
  Kept keptLeft = prepare(left, true), keptRight = prepare(right, false);
  // Loads the thread's chunks of both sides, the left side's first.
  auto load = [&](ValueRange position) {
    Emitter::Values fetched = fetch(left, keptLeft, position);
    fetched.append(fetch(right, keptRight, position));
    return fetched;
  };
  auto put = [&](ValueRange fetched, Value panels) {
    store(left, true, fetched.take_front(2 * keptLeft.size()), panels);
    store(right, false, fetched.drop_front(2 * keptLeft.size()), emit.address(panels, f32, tile.depth * stride(true)));
  };
  Emitter::Values position(panels.first);
  put(load(position), memory);
  kernel.barrier();
  position = panels.following(position);
  Emitter::Values waiting = load(position), carried(sums);
  carried.push_back(emit.integer(0));
  carried.append(waiting);
  carried.append(position);
  Emitter::Values results = emit.loop(emit.integer(0), panels.count, 1, carried, [&](Value, ValueRange now) {
    Value current = now[count()], other = emit.sub(emit.integer(panel()), current);
    // The next panel moves from registers to workgroup memory before the loads of the panel after it are issued, so
    // that these have the time of one multiplication to arrive.
    put(now.slice(count() + 1, waiting.size()), emit.address(memory, f32, other));
    Emitter::Values position = panels.following(now.drop_front(count() + 1 + waiting.size())), fetched = load(position);
    Emitter::Values next = multiply(emit.address(memory, f32, current), now.take_front(count()));
    kernel.barrier();
    next.push_back(other);
    next.append(fetched);
    next.append(position);
    return next;
  });
  results.resize(count());
  return results;
}

// Stores the sums of rows [firstRow, firstRow + rows) of the tile to workgroup memory.
void ProductBlock::stage(ValueRange sums, int64_t firstRow, int64_t rows) {
  if (isTensor())
    return stagePieces(sums, firstRow, rows);
  Type f32 = emit.getF32Type();
  int64_t down = tile.rows / tile.perRow, across = tile.columns / tile.perColumn;
  for (int64_t i = firstRow / down; i < (firstRow + rows) / down; ++i) {
    Value line = emit.add(row, offset(i, tile.perRow, down) - firstRow);
    Value to = emit.address(memory, f32, emit.add(emit.mul(line, stagedStride()), column));
    for (int64_t j = 0; j < tile.perColumn; j += vectorWidth(tile.perColumn))
      storeChunk(emit, sums.slice(i * tile.perColumn + j, vectorWidth(tile.perColumn)),
                 emit.address(to, f32, offset(j, tile.perColumn, across)));
  }
}

// With tensor cores a warp stores eight rows at once; the padding puts them into different banks.
int64_t ProductBlock::stagedStride() const { return tile.columns + (isTensor() ? 8 : 0); }
int64_t ProductBlock::stagedBytes() const {
  return isByWarpgroup() ? stages() * stageBytes() : maxStagedBytes + (isTensor() ? 4 * 8 * tile.rows : 0);
}
int64_t ProductBlock::passes() const { return ceilDiv(4 * tile.rows * stagedStride(), stagedBytes()); }

SmallVector<BlockStore> mtc::storesOf(Emitter &emit, ValueRange values, Value address) {
  SmallVector<BlockStore> stores;
  for (auto [i, value] : llvm::enumerate(values))
    stores.push_back({emit.getF32Type(), value, emit.address(address, emit.getF32Type(), static_cast<int64_t>(i))});
  return stores;
}

// Number of results for which a thread loads operands before it stores the first. If registers are limited, sums that
// wait for the next pass, and the operands of the epilogue per column and per result, leave registers for fewer.
int64_t ProductBlock::resultsPerLoad(int64_t all, int64_t vectorWidth) {
  int64_t columns = 0, each = 0; // operands per column, and per result
  for (BlockArgument argument : kernel.body().getArguments())
    if (llvm::any_of(argument.getUsers(), llvm::IsaPred<mt::ElementwiseOpInterface>))
      ++(innerCount(argument) == innerCount(kernel.yields().front()) ? each : columns);
  int64_t waiting = count() - count() / passes();
  int64_t registers = vectorWidth * std::max<int64_t>(1 + each, kernel.yields().size());
  auto fits = [&](int64_t results) {
    return !kernel.residentBlocks || waiting + vectorWidth * columns + results * registers <= maxFinishRegisters;
  };
  int64_t results = all % (resultsAtOnce * tile.threads()) ? 1 : resultsAtOnce;
  while (results > 1 && !fits(results))
    results /= 2;
  return results;
}

void ProductBlock::finish(ValueRange sums, int64_t vectorWidth,
                          llvm::function_ref<ProductResult(Value, Value, ValueRange)> each, const TileRows *tileRows) {
  Type f32 = emit.getF32Type();
  int64_t rows = tile.rows / passes();
  std::optional<TileAdder> adder;
  if (kernel.sums)
    adder.emplace(kernel, *tileRows);
  // The results that the adder takes, in place of the sums from which they were computed.
  auto keep = [&](const ProductResult &result, Value staged) {
    Emitter::Values kept;
    for (int64_t i = 0; i < vectorWidth; ++i)
      kept.push_back(result.stores[i * kernel.yields().size() + kernel.sums->yield].value);
    storeChunk(emit, kept, staged);
  };
  for (int64_t firstRow = 0; firstRow < tile.rows; firstRow += rows) {
    if (firstRow)
      kernel.barrier();
    stage(sums, firstRow, rows);
    kernel.barrier();
    int64_t across = tile.columns / vectorWidth;
    auto resultAt = [&](Value index) {
      Value line = emit.div(index, emit.integer(across)), column = emit.rem(index, emit.integer(across));
      column = emit.mul(column, vectorWidth);
      Value staged = emit.address(memory, f32, emit.add(emit.mul(line, stagedStride()), column));
      Value chunk = loadChunk(emit, f32, staged, vectorWidth);
      Emitter::Values elements;
      for (int64_t i = 0; i < vectorWidth; ++i)
        elements.push_back(vectorWidth == 1 ? chunk : emit.extract(chunk, i));
      return std::pair(each(emit.add(line, firstRow), column, elements), staged);
    };
    int64_t all = rows * across, atOnce = resultsPerLoad(all, vectorWidth);
    emit.loop(kernel.thread, emit.integer(all), atOnce * tile.threads(), [&](Value index) {
      SmallVector<std::pair<ProductResult, Value>> results;
      for (int64_t i = 0; i < atOnce; ++i)
        results.push_back(resultAt(emit.add(index, i * tile.threads())));
      for (const auto &[result, staged] : results) {
        emit.when(result.there, [&, &stores = result.stores] { storeAdjacent(emit, stores, vectorWidth); });
        if (adder)
          keep(result, staged);
      }
    });
    if (!adder)
      continue;
    kernel.barrier();
    adder->add(memory, stagedStride(), firstRow, rows);
  }
  if (adder)
    adder->store(memory);
}

Value mtc::orZero(Emitter &emit, Value there, Value value) {
  return arith::SelectOp::create(emit, there, value, emit.zeros(value.getType()));
}

// Small buffers may have any alignment; other buffers are aligned to 64 bytes.
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

namespace {
// A matrix in an argument: its first element, and the stride of its rows in elements.
struct PartOfArgument {
  Value argument;
  int64_t from, stride;
};
} // namespace

// `stride`: of a matrix that is not a slice of another matrix.
static PartOfArgument partOf(Value matrix, int64_t stride) {
  auto slice = matrix.getDefiningOp<mt::SliceOp>();
  if (!slice)
    return {matrix, 0, stride};
  int64_t columns = tensorOf(slice.getOperand()).getDimSize(1);
  return {slice.getOperand(), slice.getStarts()[0] * columns + slice.getStarts()[1], columns};
}

static Value addressOf(BlockKernel &kernel, const PartOfArgument &part) {
  Value base = kernel.argument(cast<BlockArgument>(part.argument).getArgNumber());
  return part.from ? kernel.emit.address(base, elementOf(part.argument), part.from) : base;
}

// A chunk that does not exist is loaded from a valid address and discarded, so that loads need no branches.
ProductSide mtc::matrixAcross(BlockKernel &kernel, Value matrix, int64_t width, Lines lines, Value end) {
  Emitter &emit = kernel.emit;
  Type element = elementOf(matrix);
  PartOfArgument part = partOf(matrix, width);
  Value base = addressOf(kernel, part);
  int64_t chunk = chunkOf(kernel, part.argument, std::gcd(part.stride, part.from)), stride = part.stride;
  auto prepare = [&emit, element, base, lines](Value line, Value k) -> Emitter::Values {
    Value row = emit.add(lines.first, line), there = emit.less(row, lines.end);
    return {emit.address(base, element, orZero(emit, there, row)), there, k};
  };
  auto locate = [&emit, element, stride, end](ValueRange kept, ValueRange position) -> ProductSide::Chunk {
    Value k = emit.add(position[0], kept[2]), before = emit.less(k, end);
    return {emit.address(kept[0], element, emit.mul(orZero(emit, before, k), stride)), both(emit, kept[1], before)};
  };
  return {/*deep=*/false, chunk, element, prepare, locate};
}

ProductSide mtc::matrixAlong(BlockKernel &kernel, Value matrix, int64_t depth, Lines lines) {
  Emitter &emit = kernel.emit;
  Type element = elementOf(matrix);
  PartOfArgument part = partOf(matrix, depth);
  Value base = addressOf(kernel, part);
  // Chunks end at the depth, because elements after it in the row must not count.
  int64_t run = std::gcd(std::gcd(part.stride, part.from), depth), stride = part.stride;
  int64_t chunk = chunkOf(kernel, part.argument, run);
  auto prepare = [&emit, element, base, stride, lines](Value line, Value k) -> Emitter::Values {
    Value row = emit.add(lines.first, line), there = emit.less(row, lines.end);
    return {emit.address(base, element, emit.mul(orZero(emit, there, row), stride)), there, k};
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
