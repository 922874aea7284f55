// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and their input gradients, with element-wise operations on the result. A tile of the grid is a block of
// rows of one sample. A thread packs a small matrix as a whole and processes each block with all its panels, so that
// memory is read and written once. It packs a large matrix one panel at a time, and processes all its tiles with the
// panel.
#include "compiler/codegen/cpu/Conv.h"
#include "compiler/codegen/cpu/Kernels.h"
#include "compiler/codegen/cpu/Winograd.h"
#include "dialects/mt/KernelKinds.h"

using namespace mlir;
using namespace mtc;

// Largest number of floats of a packed panel, which is on the stack, and of a matrix that is packed as a whole and
// stays in the L2 cache.
static constexpr int64_t packedFloats = 1 << 19, residentFloats = 160 << 10;

// 16 elements of an operand of the epilogue, which has the shape of the result, one element per channel, or one
// element.
Value ConvEmitter::loadElements(Value value, Value base, Value pixel, Value channel, Value mask) {
  Type element = elementOf(value);
  if (innerCount(value) == 1 && !isSplit(value))
    return emit.splat(emit.load(element, base));
  if (isSplit(value))
    base = emit.address(base, element, emit.mul(pixel, product.result.channels));
  return emit.loadLanes(element, emit.address(base, element, channel), mask);
}

// Stores one vector of a pixel of the result (numbered over all samples), whose sums are at `line`.
void ConvEmitter::emitVector(const Columns &columns, Value line, Value pixel, int64_t vector) {
  Type f32 = emit.realType();
  bool masked = vector + 1 == columns.panel.vectors && columns.panel.last < lanes;
  Value mask = masked ? emit.maskBelow(columns.panel.last) : Value();
  Value channel =
      emit.add(emit.add(emit.mul(columns.group, product.result.groupChannels), columns.first), vector * lanes);
  VectorBody body(kernel, /*scalar=*/false, [&](Value value) -> Value {
    if (value == op->getResult(0))
      return emit.loadLanes(f32, emit.address(line, f32, vector * lanes));
    if (isa<BlockArgument>(value))
      return loadElements(value, pointers(value), pixel, channel, mask);
    if (auto constant = value.getDefiningOp<mt::ConstantOp>())
      if (auto values = cast<DenseElementsAttr>(constant.getValue()); !values.isSplat())
        return loadElements(value, emit.global(values), pixel, channel, mask);
    return Value();
  });
  SmallVector<Value> computed;
  for (auto [value, pointer] : results)
    computed.push_back(body.get(value));
  for (auto [value, wanted] : llvm::zip_equal(computed, results)) {
    auto [yield, result] = wanted;
    Type element = elementOf(yield);
    Value pointer =
        emit.address(emit.address(result, element, emit.mul(pixel, product.result.channels)), element, channel);
    emit.storeLanes(element, value, pointer, mask);
  }
}

void ConvEmitter::emitEpilogue(const Columns &columns, const Positions &at) {
  Type f32 = emit.realType();
  const Residue &residue = at.residue;
  const Image &image = product.result;
  int64_t width = columns.panel.width(), across = at.columns;
  Value down = at.rows;
  if (product.winograd) { // the last tiles of Winograd's algorithm may be larger than the result
    down = emit.min(down, emit.sub(emit.integer(image.rows), at.row));
    across = std::min(across, image.columns - at.column.known);
  }
  emit.loop(emit.integer(0), down, 1, [&](Value i) {
    Value row = emit.add(emit.mul(emit.add(at.row, i), residue.rowStride), residue.firstRow);
    Value start = emit.add(emit.mul(emit.add(emit.mul(at.sample, image.rows), row), image.columns),
                           emit.add(emit.mul(at.column.value, residue.columnStride), residue.firstColumn));
    Value line = emit.address(columns.sums, f32, emit.mul(i, at.columns * width));
    emit.loop(emit.integer(0), emit.integer(across), 1, [&](Value j) {
      Value pixel = emit.add(start, emit.mul(j, residue.columnStride)),
            sums = emit.address(line, f32, emit.mul(j, width));
      for (int64_t vector = 0; vector < columns.panel.vectors; ++vector)
        emitVector(columns, sums, pixel, vector);
    });
  });
}

// Distances of the taps in one step of the tile: all taps of a row of taps if adjacent positions read the same elements
// and the vectors are too few to reuse an element of the source; else one tap.
SmallVector<int64_t> ConvEmitter::tapsOf(const Residue &residue, const Panel &panel) {
  int64_t count = residue.tapColumns(), pixel = product.pixelStride(residue);
  int64_t terms = product.adjacentTerms();
  if (!emit.vectors.isWide() || product.depthwise || panel.vectors > 2 || count == 1 ||
      count * terms * panel.vectors > 14)
    return {0};
  SmallVector<int64_t> taps;
  bool shared = false;
  for (const Tap &tap : ArrayRef(residue.taps).take_front(count)) {
    int64_t distance = tap.column - residue.taps.front().column;
    for (int64_t term = 0; term < terms; ++term)
      taps.push_back(distance * pixel + term);
    shared |= distance > 0 && distance % residue.columnStep == 0;
  }
  return shared ? taps : SmallVector<int64_t>{0};
}

// Number of rows of taps above row `bound` of the source, for positions in a row of the residue.
Value ConvEmitter::rowsBelow(const Residue &residue, Value row, int64_t bound) {
  int64_t count = residue.tapRows(), step = residue.tapRowStep();
  Value distance = emit.sub(emit.integer(bound - residue.lowRow), emit.mul(row, residue.rowStep));
  return emit.min(emit.ceilDiv(emit.max(distance, emit.integer(0)), step), emit.integer(count));
}

// Emits the tiles of a block for some steps of the residue's matrix: in each row, only the positions whose row of taps
// is inside the image.
void ConvEmitter::emitTiles(const Columns &columns, const Positions &at, Value a, const Steps &steps) {
  Type f32 = emit.realType(), i32 = emit.getI32Type();
  const Residue &residue = at.residue;
  int64_t taps = steps.taps.size(), width = columns.panel.width(),
          most = offsetTileRows(emit.vectors, columns.panel, product.depthwise, taps);
  int64_t down = residue.rowStep * product.rowStride(residue) * product.pixelStride(residue);
  int64_t along = residue.columnStep * product.pixelStride(residue);
  int64_t lineSteps = residue.tapColumns() * product.tapDepth() / taps;
  bool halo = residue.lowRow < 0 || residue.lowRow + residue.reachRows(residue.rows) > product.source.rows;
  TileForm form{/*masked=*/false, product.depthwise, /*scattered=*/false, llvm::to_vector(steps.taps), product.terms};
  Value fresh = emit.equal(steps.first, emit.integer(0)), end = emit.add(steps.first, steps.count);
  auto cut = [&](Value i, int64_t rows) {
    Value first = steps.first, last = end;
    if (halo) {
      Value row = emit.add(at.row, i);
      first = emit.max(first, emit.mul(rowsBelow(residue, row, 0), lineSteps));
      last = emit.min(last, emit.mul(rowsBelow(residue, row, product.source.rows), lineSteps));
    }
    Value depth = emit.max(emit.sub(last, first), emit.integer(0)), table = emit.address(steps.table, i32, first);
    Value b = emit.address(columns.packed, f32, emit.mul(emit.add(emit.mul(first, taps), at.packedRow), width));
    auto tile = [&](Value j, int64_t count) {
      SmallVector<int64_t> offsets;
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < count; ++column)
          offsets.push_back(row * down + column * along);
      Value start = emit.address(a, f32, emit.add(emit.mul(i, down), emit.mul(j, along)));
      Value sums = emit.address(columns.sums, f32, emit.mul(emit.add(emit.mul(i, at.columns), j), width));
      emitOffsetTile(emit, offsets, columns.panel, form,
                     {start, table, b, emit.integer(taps * width), depth, sums, fresh});
    };
    int64_t tiles = (at.columns + most - 1) / most, height = at.columns / tiles,
            higher = at.columns % tiles * (height + 1);
    if (higher > 0)
      emit.loop(emit.integer(0), emit.integer(higher), height + 1, [&](Value j) { tile(j, height + 1); });
    emit.loop(emit.integer(higher), emit.integer(at.columns), height, [&](Value j) { tile(j, height); });
  };
  int64_t rowsAtOnce = std::min(at.columns * 2 <= most ? most / at.columns : 1, product.blockOf(residue).rows);
  auto one = [&](Value i) { cut(i, 1); };
  if (rowsAtOnce == 1)
    return emit.loop(emit.integer(0), at.rows, 1, one);
  // Rows whose taps are all inside the image form full tiles.
  Value top = emit.integer(0), inner = at.rows;
  if (halo) {
    auto rowsUntil = [&](int64_t position) {
      return emit.min(emit.max(emit.sub(emit.integer(position), at.row), emit.integer(0)), at.rows);
    };
    top = rowsUntil(llvm::divideCeil(std::max<int64_t>(-residue.lowRow, 0), residue.rowStep));
    int64_t inside = std::max<int64_t>(product.source.rows - residue.highRow, 0);
    inner = emit.max(emit.sub(rowsUntil(llvm::divideCeil(inside, residue.rowStep)), top), emit.integer(0));
  }
  Value whole = emit.add(top, emit.mul(emit.div(inner, emit.integer(rowsAtOnce)), rowsAtOnce));
  emit.loop(emit.integer(0), top, 1, one);
  emit.loop(top, whole, rowsAtOnce, [&](Value i) { cut(i, rowsAtOnce); });
  emit.loop(whole, at.rows, 1, one);
}

// Address of the source at a block's positions: in the source itself, or in a copy with a halo of zeros.
Value ConvEmitter::positionsOf(Value group, const Positions &at) {
  Type f32 = emit.realType();
  const Residue &residue = at.residue;
  const Image &image = product.memory();
  Value a = emit.address(source, product.element ? product.element : f32, emit.mul(at.sample, image.size())),
        channel = emit.mul(group, image.groupChannels);
  if (product.needsHaloBuffer(residue)) {
    fillHaloBuffer(emit, product, residue, a, channel, at.row, at.column.known, at.rows, at.columns, haloBuffer);
    return haloBuffer;
  }
  Value row = emit.add(emit.mul(at.row, residue.rowStep), residue.lowRow);
  return emit.address(emit.address(a, f32, emit.mul(row, image.columns * image.channels)), f32,
                      emit.add(channel, emit.mul(at.column.value, residue.columnStep * image.channels)),
                      residue.lowColumn * image.channels);
}

void ConvEmitter::emitPanel(const Columns &columns, const Positions &at, Value a) {
  Type f32 = emit.realType();
  const Residue &residue = at.residue;
  int64_t pixel = product.pixelStride(residue), line = product.rowStride(residue);
  SmallVector<int64_t> taps = tapsOf(residue, columns.panel), offsets;
  SmallVector<std::pair<Tap, int64_t>> chain = product.chain(residue);
  for (size_t k = 0; k < chain.size(); k += taps.size()) {
    auto [tap, c] = chain[k];
    offsets.push_back(((tap.row - residue.lowRow) * line + tap.column - residue.lowColumn) * pixel + c);
  }
  if (product.depthwise)
    a = emit.address(a, f32, columns.first);
  Value table = emitTable(emit, offsets);
  // The first-level cache of a CPU with few registers is smaller too.
  int64_t count = offsets.size(), step = columns.panel.depth() / taps.size() / (emit.vectors.isWide() ? 1 : 2);
  emitChains(emit, product.terms, [&] {
    emit.loop(emit.integer(0), emit.integer(count), step, [&](Value k) {
      emitTiles(columns, at, a, {table, k, emit.min(emit.integer(step), emit.sub(emit.integer(count), k)), taps});
    });
  });
}

void ConvEmitter::emitBlock(Panels panels, Value group, const Positions &at) {
  Value a = at.residue.taps.empty() ? Value() : positionsOf(group, at);
  if (product.winograd) {
    int64_t pixel = product.pixelStride(at.residue), channels = product.source.groupChannels;
    transformBlock(emit, {a, pixel, product.rowStride(at.residue) * pixel}, at.rows, at.columns, emit.integer(0),
                   emit.integer(channels), elements, elementFloats(), channels);
  }
  panels([&](const Columns &columns) {
    if (product.winograd)
      emitElements(columns, at);
    else if (a)
      emitPanel(columns, at, a);
    else
      forVectors(emit, columns.panel, emit.mul(at.rows, at.columns), [&](Value index) {
        Type f32 = emit.realType();
        emit.storeLanes(emit.zeros(emit.vectorOf(f32)), emit.address(columns.sums, f32, index));
      });
    emitEpilogue(columns, at);
  });
}

void ConvEmitter::emitTile(Panels panels, Value group, Value tile) {
  Value blocks = emit.integer(product.rowBlocks()), sample = emit.div(tile, blocks), block = emit.rem(tile, blocks);
  int64_t packedRow = 0;
  for (const Residue &residue : product.residues) {
    PixelBlock size = product.blockOf(residue);
    Value row = emit.mul(block, size.rows), end = emit.integer(residue.rows);
    emit.when(emit.less(row, end), [&] {
      Value rows = emit.min(emit.integer(size.rows), emit.sub(end, row));
      forColumnBlocks(emit, product, residue, [&](BlockColumn column, int64_t count) {
        emitBlock(panels, group, {residue, packedRow, sample, row, rows, column, count});
      });
    });
    packedRow += residue.taps.size() * product.tapDepth();
  }
}

// Number of vectors of a panel; fewer if the matrix is deep.
int64_t ConvEmitter::vectors() const {
  int64_t vectors = emit.vectors.tileVectors();
  while (vectors > 1 && depth() * vectors * lanes > packedFloats)
    --vectors;
  return vectors;
}

// Whether the last panel has one and a half vectors: of columns that fill one more half of a vector than whole ones.
bool ConvEmitter::joinsHalf() const {
  int64_t columns = product.result.groupChannels, rest = columns % lanes;
  return !product.winograd && columns > lanes && rest > 0 && depth() * 2 * lanes <= packedFloats &&
         hasHalfVector(emit.vectors, {1, rest}, product.depthwise);
}

// Calls `body` for the panels of the columns of a group.
void ConvEmitter::forPanels(llvm::function_ref<void(Value first, Panel panel)> body) {
  int64_t columns = product.result.groupChannels, rest = columns % lanes;
  if (!joinsHalf())
    return forColumnPanels(emit, columns, vectors(), body);
  int64_t before = columns - rest - lanes;
  forColumnPanels(emit, before, 1, body);
  body(emit.integer(before), {2, rest});
}

// Number of floats of all packed panels.
int64_t ConvEmitter::matrixFloats() const {
  int64_t width = vectors() * lanes;
  return packedRows() * llvm::divideCeil(product.result.groupChannels, width) * width;
}

LogicalResult ConvEmitter::begin() {
  int64_t haloBufferSize = 0;
  for (const Residue &residue : product.residues)
    if (PixelBlock size = product.blockOf(residue); product.needsHaloBuffer(residue))
      haloBufferSize = std::max(haloBufferSize, residue.reachRows(size.rows) * residue.reachColumns(size.columns) *
                                                    product.source.groupChannels);
  // isWinograd limits the memory of tiles.
  if (!product.winograd && (depth() * lanes > packedFloats || haloBufferSize > packedFloats))
    return kernel.op.emitError("expected a convolution of at most ")
           << packedFloats / lanes << " taps times channels over at most " << packedFloats
           << " elements of a block, found " << depth() << " and " << haloBufferSize;
  Type f32 = emit.realType();
  haloBuffer = haloBufferSize ? emit.array(f32, haloBufferSize) : Value();
  if (product.winograd) {
    int64_t width = vectors() * lanes;
    chainPanel = emit.array(f32, 9 * product.tapDepth() * width);
    elements = emit.array(f32, winogradElements * elementFloats());
    elementSums = emit.array(f32, winogradElements * winogradPositions / 4 * width);
  }
  return success();
}

void ConvEmitter::packAtOnce() {
  Type f32 = emit.realType();
  matrix = emit.array(f32, matrixFloats());
  sums = emit.array(f32, product.mostPositions() * (joinsHalf() ? 2 : vectors()) * lanes);
  forPanelsAtOnce([&](const Columns &columns) { pack(columns); });
}

void ConvEmitter::forPanelsAtOnce(llvm::function_ref<void(const Columns &)> body) {
  Type f32 = emit.realType();
  forPanels([&](Value first, Panel panel) {
    body({emit.integer(0), first, panel, emit.address(matrix, f32, emit.mul(first, packedRows())), sums});
  });
}

// An operand of the epilogue with one element per channel, repeated for each of the pixels that are joined.
Value ConvEmitter::joinedElements(Value value, Value buffer) {
  int64_t count = innerCount(value);
  if (product.joined == 1 || isSplit(value) || count == 1)
    return buffer;
  Type element = elementOf(value);
  Value all = emit.array(element, count * product.joined);
  for (int64_t pixel = 0; pixel < product.joined; ++pixel)
    emit.loop(emit.integer(0), emit.integer(count), 1, [&](Value i) {
      emit.store(element, emit.load(element, emit.address(buffer, element, i)),
                 emit.address(all, element, i, pixel * count));
    });
  return all;
}

LogicalResult ConvEmitter::run() {
  llvm::DenseMap<Value, Value> buffers;
  for (auto [i, argument] : llvm::enumerate(kernel.body().getArguments())) {
    Value buffer = kernel.argumentBuffer(i);
    buffers[argument] = llvm::is_contained(op->getOperands(), argument) ? buffer : joinedElements(argument, buffer);
  }
  pointers = [buffers](Value value) { return buffers.lookup(value); };
  for (auto [i, yield] : llvm::enumerate(kernel.yields()))
    results.push_back({yield, kernel.resultBuffer(i)});
  source = pointers(op->getOperand(0));
  weights = pointers(op->getOperand(1));
  if (failed(begin()))
    return failure();
  auto walk = [&](Panels panels, Value group) {
    emit.loop(kernel.tileBegin, kernel.tileEnd, 1, [&](Value tile) { emitTile(panels, group, tile); });
  };
  Type f32 = emit.realType();
  int64_t channels = product.result.groupChannels, width = vectors() * lanes;
  if (product.groups == 1 && channels > width && matrixFloats() <= residentFloats) {
    packAtOnce();
    walk([&](auto body) { forPanelsAtOnce(body); }, emit.integer(0));
    return success();
  }
  emit.loop(emit.integer(0), emit.integer(product.groups), 1, [&](Value group) {
    forPanels([&](Value first, Panel panel) {
      Columns columns{group, first, panel, emit.array(f32, packedRows() * panel.width()),
                      emit.array(f32, product.mostPositions() * panel.width())};
      pack(columns);
      walk([&](auto body) { body(columns); }, group);
    });
  });
  return success();
}

LogicalResult ConvEmitter::prepare(Pointers pointer) {
  if (product.groups > 1 || matrixFloats() > residentFloats)
    return kernel.op.emitError("expected a convolution of one group and at most ")
           << residentFloats << " packed weights in a kernel of kind rows, found " << product.groups << " and "
           << matrixFloats();
  weights = pointer(op->getOperand(1));
  if (failed(begin()))
    return failure();
  packAtOnce();
  return success();
}

LogicalResult ConvEmitter::runSample(Pointers pointer, ArrayRef<Value> wanted) {
  pointers = std::move(pointer);
  source = pointers(op->getOperand(0));
  results.clear();
  for (Value value : wanted)
    results.push_back({value, pointers(value)});
  emit.loop(emit.integer(0), emit.integer(product.rowBlocks()), 1,
            [&](Value block) { emitTile([&](auto body) { forPanelsAtOnce(body); }, emit.integer(0), block); });
  return success();
}

Type mtc::extended(Value source) { return Emitter::isHalf(elementOf(source)) ? elementOf(source) : Type(); }

Product mtc::productOf(Operation *op) {
  mt::Convolution convolution = cast<mt::ConvolutionOpInterface>(op).getConvolution();
  Product product = isa<mt::Conv2DOp>(op) ? forwardProduct(convolution) : gradientProduct(convolution);
  product.element = extended(op->getOperand(0));
  return isWinograd(product) ? overTiles(std::move(product)) : product;
}

Grid mtc::convGrid(plan::KernelOp op) { return {1, productOf(mt::productOf(op.getBody().front())).rowBlocks(), 0}; }

// Whether an operand of the epilogue is a constant with one element per channel.
static bool hasConstantOfChannels(Block &body) {
  return llvm::any_of(body.getOps<mt::ConstantOp>(), [](mt::ConstantOp constant) {
    auto values = dyn_cast<DenseElementsAttr>(constant.getValue());
    return values && !values.isSplat();
  });
}

LogicalResult mtc::emitConv(Kernel &kernel) {
  if (failed(checkOffsets(kernel)))
    return failure();
  Operation *op = mt::productOf(kernel.body());
  bool isGradient = !isa<mt::Conv2DOp>(op);
  Terms terms = termsOf(kernel.emit, elementOf(op->getOperand(0)), elementOf(op->getOperand(1)));
  Product product = productOf(op);
  if (isGradient && !hasConstantOfChannels(kernel.body()))
    product = joinPixels(std::move(product), cast<mt::ConvolutionOpInterface>(op).getConvolution().columns.stride);
  return ConvEmitter(kernel, op, withTerms(std::move(product), terms), isGradient).run();
}
