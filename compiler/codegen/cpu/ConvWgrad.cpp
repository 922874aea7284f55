// SPDX-License-Identifier: Apache-2.0
//
// Kernel gradients of convolutions: the product of (taps x channels, positions) and (positions, filters). The sum is
// over the positions of each sample in order, then over the samples of a shard in order, then over the shards along the
// tree. The sums of a bundle of rows stay in memory from block to block. If there are few filters, the product is
// transposed: for each row of taps (filters, positions) times (positions, taps of the row x channels). If a unit has
// one tap, only the positions whose tap is inside the image are visited, without a copy with a halo of zeros. In a rows
// kernel there is no tree: the result is the gradient of each sample.
#include "compiler/codegen/cpu/ConvWgrad.h"
#include "compiler/codegen/cpu/Conv.h"
#include "compiler/codegen/cpu/Kernels.h"
#include "compiler/codegen/cpu/Tile.h"
#include "compiler/codegen/cpu/WinogradGradient.h"

using namespace mlir;
using namespace mtc;

static Product kernelProduct(mt::Conv2DKernelGradientOp op) {
  Product product = forwardProduct(op.getConvolution());
  product.element = extended(op.getInput());
  return product;
}

KernelGradientEmitter::KernelGradientEmitter(Kernel &kernel, mt::Conv2DKernelGradientOp op, const Pointers &pointers,
                                             Terms given)
    : kernel(kernel), emit(kernel.emit), product(kernelProduct(op)), residue(product.residues.front()),
      element(elementOf(op.getGradient())), terms(product.depthwise ? Terms::single : given),
      transposed(isTransposed(product)), direct(isDirect(product)),
      height(transposed ? residue.taps.size() / residue.tapColumns() * product.result.channels
                        : residue.taps.size() * product.tapDepth()),
      units(unitsOf(product)), source(pointers.source), gradient(pointers.gradient), result(pointers.result) {
  SmallVector<int64_t> start, pattern, first, line, row, end, column;
  for (const RowUnit &unit : units) {
    line.push_back(unit.line);
    row.push_back(unit.rows.first);
    end.push_back(unit.rows.second);
    column.push_back(unit.tapColumn);
    auto known = llvm::find(shapes, unit.offsets);
    pattern.push_back(known - shapes.begin());
    if (known == shapes.end())
      shapes.push_back(unit.offsets);
    start.push_back(unit.start);
    first.push_back(unit.first);
  }
  first.push_back(height);
  starts = emitTable(emit, start);
  patterns = emitTable(emit, pattern);
  firsts = emitTable(emit, first);
  tapLines = emitTable(emit, line);
  tapRows = emitTable(emit, row);
  tapEnds = emitTable(emit, end);
  tapColumns = emitTable(emit, column);
}

// Adds the positions of a block to the sums of all units of the part.
void KernelGradientEmitter::emitBlock(const Part &part, Value sample, Value row, Value rows, BlockColumn column,
                                      int64_t columns) {
  Type f32 = emit.realType();
  const Image &image = product.source;
  int64_t pixel = product.pixelStride(residue), line = product.rowStride(residue);
  Value a = emit.address(source, product.element ? product.element : f32, emit.mul(sample, image.size())),
        channel = emit.mul(part.group, image.groupChannels);
  if (direct) {
    a = emit.address(emit.address(a, f32, emit.mul(row, residue.rowStep * image.columns * image.channels)), f32,
                     channel, column.known * residue.columnStep * image.channels);
  } else if (terms != Terms::single) {
    fillPairs(part, a, channel, row, rows, column.known, columns);
    a = haloBuffer;
  } else if (product.needsHaloBuffer(residue)) {
    fillHaloBuffer(emit, product, residue, a, channel, row, column.known, rows, columns, haloBuffer);
    a = haloBuffer;
  } else {
    Value top = emit.add(emit.mul(row, residue.rowStep), residue.lowRow);
    a = emit.address(emit.address(a, f32, emit.mul(top, image.columns * image.channels)), f32,
                     emit.add(channel, emit.mul(column.value, residue.columnStep * image.channels)),
                     residue.lowColumn * image.channels);
  }
  if (product.depthwise)
    a = emit.address(a, f32, part.column);
  SmallVector<int64_t> offsets;
  for (int64_t i = 0; i < product.blockOf(residue).rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      offsets.push_back((i * residue.rowStep * line + j * residue.columnStep) * pixel);
  Value depth = emit.mul(rows, columns);
  int64_t filters = product.result.channels;
  // The sums of a shard start at its first position.
  Value before = emit.add(emit.add(emit.sub(sample, part.start), row), column.value),
        fresh = emit.equal(before, emit.integer(0));
  Value pixels =
      emit.add(emit.mul(emit.add(emit.mul(sample, product.result.rows), row), product.result.columns), column.value);
  Value b = emit.address(gradient, element, emit.mul(pixels, filters));
  if (terms != Terms::single)
    return emitPairs(part, a, b, offsets, depth, fresh);
  Value table = emitTable(emit, offsets);
  Type from = part.packed ? element : f32;
  if (!part.packed && Emitter::isHalf(element)) {
    // The positions of a block are contiguous.
    emitExtend(emit, element, b, filters, extendedGradient, filters, depth, emit.integer(filters));
    b = extendedGradient;
  }
  if (transposed) {
    SmallVector<int64_t> positions;
    for (size_t position = 0; position < offsets.size(); ++position)
      positions.push_back(position * filters);
    TileForm form{/*masked=*/true, /*lanewise=*/false, /*scattered=*/true};
    Value strides = emitTable(emit, positions), first = emit.address(a, f32, part.column);
    return emitUnits(part, b, {b, strides, first, table, depth, {}, fresh}, form);
  }
  b = emit.address(b, from, emit.add(emit.mul(part.group, product.result.groupChannels), part.column));
  if (part.packed)
    emitPack(emit, part.panel, b, filters, depth, part.packed, element);
  if (direct) {
    TileOperands operands{a, {}, part.packed ? part.packed : b, {}, {}, {}, fresh};
    Inside inside = emitInside(part, row, rows, column, columns, operands);
    return emitUnits(part, a, operands, {/*masked=*/!part.packed, /*lanewise=*/false, /*scattered=*/true}, &inside);
  }
  if (part.packed)
    return emitUnits(part, a, {a, table, part.packed, emit.integer(part.panel.width()), depth, {}, fresh},
                     {/*masked=*/false, /*lanewise=*/false});
  emitUnits(part, a, {a, table, b, emit.integer(filters), depth, {}, fresh}, {/*masked=*/true, product.depthwise});
}

// Builds tables of the positions of a block: for each column of taps, the positions that it reads inside the image.
KernelGradientEmitter::Inside KernelGradientEmitter::emitInside(const Part &part, Value row, Value rows,
                                                                BlockColumn column, int64_t columns,
                                                                TileOperands &operands) {
  const Image &image = product.source;
  int64_t distance = part.packed ? part.panel.width() : product.result.channels;
  SmallVector<int64_t> offsets, positions, starts, lengths;
  for (const Tap &tap : ArrayRef(residue.taps).take_front(residue.tapColumns())) {
    auto [first, end] = insideRange(tap.column, residue.columnStep, image.columns, residue.columns);
    first = std::max(first - column.known, int64_t(0));
    end = std::max(std::min(end - column.known, columns), first);
    starts.push_back(offsets.size());
    lengths.push_back(end - first);
    for (int64_t i = 0; i < product.blockOf(residue).rows; ++i)
      for (int64_t j = first; j < end; ++j) {
        offsets.push_back((i * residue.rowStep * image.columns + j * residue.columnStep) * image.channels);
        positions.push_back((i * columns + j) * distance);
      }
  }
  operands.table = emitTable(emit, offsets);
  operands.stride = emitTable(emit, positions);
  return {row, rows, emitTable(emit, starts), emitTable(emit, lengths)};
}

// Operands of one unit: the rows of positions that its tap reads inside the image.
TileOperands KernelGradientEmitter::insideOf(const Inside &inside, Value unit, TileOperands operands) {
  Value column = loadTable(emit, tapColumns, unit), length = loadTable(emit, inside.lengths, column);
  auto within = [&](Value table) {
    Value row = emit.sub(loadTable(emit, table, unit), inside.row);
    return emit.min(emit.max(row, emit.integer(0)), inside.rows);
  };
  Value first = within(tapRows), count = emit.max(emit.sub(within(tapEnds), first), emit.integer(0));
  Value from = emit.add(loadTable(emit, inside.starts, column), emit.mul(first, length));
  operands.table = emit.address(operands.table, emit.getI32Type(), from);
  operands.stride = emit.address(operands.stride, emit.getI32Type(), from);
  operands.depth = emit.mul(count, length);
  return operands;
}

// Emits the tiles of all units of the part, with their addresses in `a`.
void KernelGradientEmitter::emitUnits(const Part &part, Value a, const TileOperands &given, TileForm form,
                                      const Inside *inside) {
  Type f32 = emit.realType();
  int64_t width = part.panel.width();
  emit.loop(part.from, part.to, 1, [&](Value unit) {
    Value start = emit.address(a, f32, loadTable(emit, starts, unit)), pattern = loadTable(emit, patterns, unit);
    Value sums = emit.address(part.sums, f32, emit.mul(emit.sub(loadTable(emit, firsts, unit), part.row), width));
    TileOperands common = inside ? insideOf(*inside, unit, given) : given;
    Value b = transposed ? emit.address(common.b, f32, loadTable(emit, tapLines, unit)) : common.b;
    for (auto [index, shape] : llvm::enumerate(shapes))
      emit.when(emit.equal(pattern, emit.integer(index)), [&] {
        for (auto [first, count] : cutEvenly(shape.size(), offsetTileRows(emit.vectors, part.panel, form.lanewise))) {
          SmallVector<int64_t> relative;
          for (int64_t offset : ArrayRef(shape).slice(first, count))
            relative.push_back(offset - shape[first]);
          emitOffsetTile(emit, relative, part.panel, form,
                         {emit.address(start, f32, shape[first]), common.table, b, common.stride, common.depth,
                          emit.address(sums, f32, first * width), common.fresh});
        }
      });
  });
}

void KernelGradientEmitter::emitSample(const Part &part, Value sample) {
  PixelBlock size = product.blockOf(residue);
  emit.loop(emit.integer(0), emit.integer(residue.rows), size.rows, [&](Value row) {
    Value rows = emit.min(emit.integer(size.rows), emit.sub(emit.integer(residue.rows), row));
    forColumnBlocks(emit, product, residue,
                    [&](BlockColumn column, int64_t columns) { emitBlock(part, sample, row, rows, column, columns); });
  });
}

void KernelGradientEmitter::store(const Part &part, Value count) {
  Type f32 = emit.realType();
  Value channel = emit.add(emit.mul(part.group, product.result.groupChannels), part.column);
  emit.loop(emit.integer(0), count, 1, [&](Value i) {
    Value from = emit.address(part.sums, f32, emit.mul(i, part.panel.width()));
    Value to =
        emit.address(emit.address(result, f32, emit.mul(emit.add(part.row, i), product.result.channels)), f32, channel);
    for (int64_t vector = 0; vector < part.panel.vectors; ++vector) {
      bool masked = vector + 1 == part.panel.vectors && part.panel.last < lanes;
      emit.storeLanes(emit.loadLanes(f32, emit.address(from, f32, vector * lanes)),
                      emit.address(to, f32, vector * lanes), masked ? emit.maskBelow(part.panel.last) : Value());
    }
  });
}

// Stores sums of (kh, filter) x (kw, c) to the result (kh, kw, c) x filter.
void KernelGradientEmitter::storeTransposed(const Part &part, Value count) {
  Type f32 = emit.realType();
  int64_t filters = product.result.channels, floats = columnsOf(product);
  emit.loop(emit.integer(0), count, 1, [&](Value i) {
    Value row = emit.add(part.row, i), from = emit.address(part.sums, f32, emit.mul(i, part.panel.width()));
    Value line = emit.add(emit.mul(emit.div(row, emit.integer(filters)), floats), part.column);
    Value to =
        emit.address(emit.address(result, f32, emit.mul(line, filters)), f32, emit.rem(row, emit.integer(filters)));
    emit.loop(emit.integer(0), emit.integer(part.panel.width() - lanes + part.panel.last), 1, [&](Value n) {
      emit.store(emit.load(f32, emit.address(from, f32, n)), emit.address(to, f32, emit.mul(n, filters)));
    });
  });
}

void KernelGradientEmitter::emitBundle(const Part &part, const Shards &shards) {
  Type f32 = emit.realType();
  int64_t floats = bundleUnits * unitRows * part.panel.width();
  Value stack = emit.array(f32, floats * shards.levels), count = emit.sub(loadTable(emit, firsts, part.to), part.row);
  auto at = [&](Value level, Value index) {
    return emit.address(emit.address(stack, f32, emit.mul(level, floats)), f32, index);
  };
  auto shard = [&](Value first, Value end) {
    Part samples = part;
    samples.start = first;
    emit.loop(first, end, terms == Terms::single ? 1 : 2, [&](Value sample) {
      samples.alone = emit.less(end, emit.add(sample, 2));
      emitSample(samples, sample);
    });
  };
  auto combine = [&](Value level) {
    forVectors(emit, part.panel, count, [&](Value index) {
      Value address = emit.address(part.sums, f32, index);
      emit.storeLanes(arith::AddFOp::create(emit, emit.loadLanes(f32, at(level, index)), emit.loadLanes(f32, address)),
                      address);
    });
  };
  auto push = [&](Value level) {
    forVectors(emit, part.panel, count, [&](Value index) {
      emit.storeLanes(emit.loadLanes(f32, emit.address(part.sums, f32, index)), at(level, index));
    });
  };
  emitTreeInMemory(emit, shards, shard, combine, push);
  transposed ? storeTransposed(part, count) : store(part, count);
}

// Whether panels have one and a half vectors: if this many columns are left for each panel, or if units have so few
// rows that tiles of one vector would not use all registers.
bool KernelGradientEmitter::takesHalves() const {
  constexpr int64_t width = lanes + lanes / 2;
  int64_t columns = columnsOf(product), rows = 0;
  Panel panel{2, lanes / 2};
  if (!hasHalfVector(emit.vectors, panel, product.depthwise) || columns > panelColumns || columns % width)
    return false;
  for (const auto &shape : shapes)
    for (auto [first, count] : cutEvenly(shape.size(), offsetTileRows(emit.vectors, {1, lanes}, /*lanewise=*/false)))
      rows = std::max(rows, count);
  return columns == width || rows <= offsetTileRows(emit.vectors, panel, /*lanewise=*/false);
}

// Calls `body` for the panels of the wide panel at `column`.
void KernelGradientEmitter::forPanelsOf(Value column, llvm::function_ref<void(Value column, Panel panel)> body) {
  int64_t columns = columnsOf(product);
  if (!takesHalves())
    return forPanels(emit, columns, column, emit.add(column, panelColumns), body);
  emit.loop(column, emit.integer(columns), lanes + lanes / 2, [&](Value at) { body(at, {2, lanes / 2}); });
}

// Calls `body` for bundles of the tiles [begin, end) of the grid: groups, then wide panels, then units.
void KernelGradientEmitter::forBundles(Value begin, Value end, llvm::function_ref<void(const Part &)> body) {
  Type f32 = emit.realType();
  int64_t samples = terms == Terms::swapped ? 2 : 1;
  if (product.needsHaloBuffer(residue) && !direct)
    haloBuffer = emit.array(f32, haloFloats() * samples);
  if (Emitter::isHalf(element) && (terms == Terms::single || transposed))
    extendedGradient = emit.array(f32, gradientFloats() * samples);
  int64_t columns = columnsOf(product), wides = llvm::divideCeil(columns, panelColumns), count = units.size();
  emit.loop(emit.div(begin, emit.integer(count)), emit.ceilDiv(end, count), 1, [&](Value wide) {
    Value offset = emit.mul(wide, count), group = emit.div(wide, emit.integer(wides));
    Value from = emit.max(emit.sub(begin, offset), emit.integer(0));
    Value to = emit.min(emit.sub(end, offset), emit.integer(count));
    Value column = emit.mul(emit.rem(wide, emit.integer(wides)), panelColumns);
    forPanelsOf(column, [&](Value panelColumn, Panel panel) {
      Value sums = emit.array(f32, bundleUnits * unitRows * panel.width()), packed;
      // Positions at large distances share sets of the L1 cache, and every unit reads each of them, so the positions
      // are packed.
      if (!transposed && !product.depthwise && (terms != Terms::single || product.result.channels > panel.width()))
        packed = emit.array(f32, blockPositions * panel.width() * samples);
      emit.loop(from, to, bundleUnits, [&](Value unit) {
        Value last = emit.min(emit.add(unit, bundleUnits), to);
        body({group, panelColumn, panel, unit, last, loadTable(emit, firsts, unit), sums, packed, {}, {}});
      });
    });
  });
}

void KernelGradientEmitter::run() {
  Shards shards = shardsOf(kernel);
  forBundles(kernel.tileBegin, kernel.tileEnd, [&](const Part &part) { emitBundle(part, shards); });
}

// Emits all tiles for the sums of one sample.
void KernelGradientEmitter::runSample() {
  int64_t wides = llvm::divideCeil(columnsOf(product), panelColumns);
  Value none = emit.integer(0), all = emit.integer(product.groups * wides * static_cast<int64_t>(units.size()));
  forBundles(none, all, [&](const Part &given) {
    Part part = given;
    part.start = none;
    emitSample(part, none);
    Value count = emit.sub(loadTable(emit, firsts, part.to), part.row);
    transposed ? storeTransposed(part, count) : store(part, count);
  });
}

static mt::Conv2DKernelGradientOp gradientOf(plan::KernelOp op) {
  return op.getBody().front().getTerminator()->getOperand(0).getDefiningOp<mt::Conv2DKernelGradientOp>();
}

// Whether Winograd's algorithm computes the gradient.
static bool isByTiles(mt::Conv2DKernelGradientOp op) {
  return isWinogradGradient(kernelProduct(op), elementOf(op.getGradient()));
}

Grid mtc::convWgradGrid(plan::KernelOp op) {
  Product product = kernelProduct(gradientOf(op));
  if (isByTiles(gradientOf(op)))
    return {0, WinogradGradient::tiles(product), 0};
  int64_t wides = llvm::divideCeil(columnsOf(product), panelColumns), units = unitsOf(product).size();
  return {0, product.groups * wides * units, 0};
}

LogicalResult mtc::emitConvWgrad(Kernel &kernel) {
  if (failed(checkOffsets(kernel)))
    return failure();
  mt::Conv2DKernelGradientOp op = gradientOf(kernel.op);
  auto bufferOf = [&](Value value) { return kernel.argumentBuffer(cast<BlockArgument>(value).getArgNumber()); };
  Value source = bufferOf(op.getInput()), gradient = bufferOf(op.getGradient()), result = kernel.resultBuffer(0);
  if (isByTiles(op))
    WinogradGradient(kernel, kernelProduct(op), source, gradient, result).run();
  else
    KernelGradientEmitter(kernel, op, {source, gradient, result},
                          termsOf(kernel.emit, elementOf(op.getInput()), elementOf(op.getGradient())))
        .run();
  return success();
}

void mtc::emitKernelGradient(Kernel &kernel, mt::Conv2DKernelGradientOp op, Value source, Value gradient,
                             Value result) {
  if (isByTiles(op))
    WinogradGradient(kernel, kernelProduct(op), source, gradient, result).runSample();
  else
    KernelGradientEmitter(kernel, op, {source, gradient, result}).runSample();
}
