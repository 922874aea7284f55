// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cpu/WinogradGradient.h"

using namespace mlir;
using namespace mtc;

// Channels of a tile of the grid; largest number of channels of a window, whose pixels are transformed in one go; taps;
// tiles of a block.
static constexpr int64_t gridChannels = 4, windowChannels = 64, taps = 9, blockTiles = winogradPositions / 4;

WinogradGradient::WinogradGradient(Kernel &kernel, Product given, Value source, Value gradient, Value result)
    : kernel(kernel), emit(kernel.emit), product(overTiles(std::move(given))), residue(product.residues.front()),
      source(source), gradient(gradient), result(result),
      windowSize(std::min(windowChannels, product.source.groupChannels)),
      wideSize(std::min<int64_t>(panelColumns, llvm::alignTo(product.result.groupChannels, lanes))),
      pixelsStride(blockTiles * windowSize + lanes), positionsStride(blockTiles * wideSize + lanes),
      sumsStride(windowSize * wideSize + lanes) {
  Type f32 = emit.realType();
  PixelBlock size = product.blockOf(residue);
  if (product.needsHaloBuffer(residue))
    haloBuffer = emit.array(f32, residue.reachRows(size.rows) * residue.reachColumns(size.columns) * windowSize);
  packed = emit.array(f32, winogradPositions * wideSize);
  pixels = emit.array(f32, winogradElements * pixelsStride);
  positions = emit.array(f32, winogradElements * positionsStride);
  elementSums = emit.array(f32, winogradElements * sumsStride);
  sums = emit.array(f32, windowSize * taps * wideSize);
}

int64_t WinogradGradient::tiles(const Product &product) {
  return llvm::divideCeil(product.result.groupChannels, panelColumns) *
         llvm::divideCeil(product.source.groupChannels, gridChannels);
}

// Packs the gradient at the positions of a block, with zeros outside of the result.
void WinogradGradient::packPositions(Value filter, Panel panel, Value sample, Value row, Value rows, BlockColumn column,
                                     int64_t columns) {
  Type f32 = emit.realType();
  const Image &image = product.result;
  int64_t width = panel.width(), across = std::min(columns, image.columns - column.known);
  Value zero = emit.zeros(emit.vectorOf(f32));
  auto clear = [&](Value to, int64_t count) {
    for (int64_t vector = 0; vector < count * panel.vectors; ++vector)
      emit.storeLanes(zero, emit.address(to, f32, vector * lanes));
  };
  emit.loop(emit.integer(0), rows, 1, [&](Value i) {
    Value line = emit.add(row, i), to = emit.address(packed, f32, emit.mul(i, columns * width));
    auto copy = [&] {
      Value pixel = emit.add(emit.mul(emit.add(emit.mul(sample, image.rows), line), image.columns), column.value);
      Value from = emit.address(gradient, f32, emit.add(emit.mul(pixel, image.channels), filter));
      emitPack(emit, panel, from, image.channels, emit.integer(across), to);
      if (across < columns)
        clear(emit.address(to, f32, across * width), columns - across);
    };
    emit.when(emit.less(line, emit.integer(image.rows)), copy, [&] {
      emit.loop(emit.integer(0), emit.integer(columns), 1,
                [&](Value j) { clear(emit.address(to, f32, emit.mul(j, width)), 1); });
    });
  });
}

void WinogradGradient::emitTiles(const Part &part, Value sample, Value row, Value rows, BlockColumn column,
                                 int64_t columns, Value tile) {
  emitPixels(part, sample, row, rows, column, columns, tile);
  forPanelsOf(part, [&](Value offset, Panel panel) {
    packPositions(emit.add(part.column, offset), panel, sample, row, rows, column, columns);
    emitPositions(panel, rows, columns, emit.add(emit.mul(offset, blockTiles), emit.mul(tile, panel.width())));
  });
}

// Transforms the pixels of the part's channels that a block reads.
void WinogradGradient::emitPixels(const Part &part, Value sample, Value row, Value rows, BlockColumn column,
                                  int64_t columns, Value tile) {
  Type f32 = emit.realType();
  Product window = product;
  window.source.groupChannels = part.channels;
  const Image &image = product.source;
  Value a = emit.address(source, f32, emit.mul(sample, image.size()));
  if (product.needsHaloBuffer(residue)) {
    fillHaloBuffer(emit, window, residue, a, part.window, row, column.known, rows, columns, haloBuffer);
    a = haloBuffer;
  } else {
    Value top = emit.add(row, residue.lowRow);
    a = emit.address(emit.address(a, f32, emit.mul(top, image.columns * image.channels)), f32,
                     emit.add(part.window, emit.mul(column.value, image.channels)), residue.lowColumn * image.channels);
  }
  int64_t pixel = window.pixelStride(residue);
  Value first = emit.mul(emit.div(part.from, emit.integer(lanes)), lanes),
        end = emit.mul(emit.ceilDiv(emit.add(part.from, part.used), lanes), lanes);
  transformBlock(emit, {a, pixel, window.rowStride(residue) * pixel}, rows, columns, first, end,
                 emit.address(pixels, f32, emit.mul(tile, windowSize)), pixelsStride, windowSize);
}

// Transforms the packed positions of a block, and stores them from float `start` of each element on.
void WinogradGradient::emitPositions(Panel panel, Value rows, int64_t columns, Value start) {
  Type f32 = emit.realType();
  int64_t width = panel.width();
  forTilesOfBlock(emit, rows, columns, [&](Value index, Value i, Value j) {
    Value from = emit.address(packed, f32, emit.mul(emit.add(emit.mul(i, columns), j), width)),
          to = emit.address(positions, f32, emit.add(start, emit.mul(index, width)));
    for (int64_t vector = 0; vector < panel.vectors; ++vector) {
      Emitter::Values taken;
      for (int64_t position = 0; position < 4; ++position)
        taken.push_back(emit.loadLanes(
            f32, emit.address(from, f32, (position / 2 * columns + position % 2) * width + vector * lanes)));
      for (auto [element, made] : llvm::enumerate(transformPositions(emit, taken)))
        emit.storeLanes(made, emit.address(to, f32, element * positionsStride + vector * lanes));
    }
  });
}

// Adds the products of the first `count` tiles to the sums of their elements.
void WinogradGradient::emitProducts(const Part &part, Value count) {
  Type f32 = emit.realType();
  emit.loop(emit.integer(0), emit.integer(winogradElements), 1, [&](Value element) {
    Value a = emit.address(pixels, f32, emit.add(emit.mul(element, pixelsStride), part.from));
    forPanelsOf(part, [&](Value offset, Panel panel) {
      Value b = emit.add(emit.mul(element, positionsStride), emit.mul(offset, blockTiles)),
            to = emit.add(emit.mul(element, sumsStride), emit.mul(offset, windowSize));
      emitProduct(emit, Layout::columns, panel, a, emit.integer(windowSize), emit.address(positions, f32, b), count,
                  emit.address(elementSums, f32, to), part.used);
    });
  });
}

// Transforms the sums of the elements, and adds them to the sums of the taps.
void WinogradGradient::emitTaps(const Part &part) {
  Type f32 = emit.realType();
  forPanelsOf(part, [&](Value offset, Panel panel) {
    int64_t width = panel.width();
    emit.loop(emit.integer(0), part.used, 1, [&](Value channel) {
      Value from = emit.address(elementSums, f32, emit.add(emit.mul(offset, windowSize), emit.mul(channel, width))),
            to =
                emit.address(sums, f32, emit.add(emit.mul(offset, windowSize * taps), emit.mul(channel, taps * width)));
      for (int64_t vector = 0; vector < panel.vectors; ++vector) {
        Emitter::Values taken;
        for (int64_t element = 0; element < winogradElements; ++element)
          taken.push_back(emit.loadLanes(f32, emit.address(from, f32, element * sumsStride + vector * lanes)));
        for (auto [tap, made] : llvm::enumerate(transformElements(emit, taken)))
          emit.storeLanes(made, emit.address(to, f32, tap * width + vector * lanes));
      }
    });
  });
}

void WinogradGradient::clearSums(const Part &part) {
  Type f32 = emit.realType();
  Value zero = emit.zeros(emit.vectorOf(f32));
  emit.loop(emit.integer(0), emit.integer(winogradElements), 1, [&](Value element) {
    forPanelsOf(part, [&](Value offset, Panel panel) {
      Value to = emit.address(elementSums, f32, emit.add(emit.mul(element, sumsStride), emit.mul(offset, windowSize)));
      forVectors(emit, panel, part.used, [&](Value index) { emit.storeLanes(zero, emit.address(to, f32, index)); });
    });
  });
}

// Computes the sums of the taps over samples [first, end).
void WinogradGradient::emitSamples(const Part &part, Value first, Value end) {
  clearSums(part);
  PixelBlock size = product.blockOf(residue);
  int64_t all = residue.rows * residue.columns / 4;
  if (all <= blockTiles) { // one block covers several samples
    int64_t samplesAtOnce = blockTiles / all;
    emit.loop(first, end, samplesAtOnce, [&](Value sample) {
      Value count = emit.min(emit.integer(samplesAtOnce), emit.sub(end, sample)), zero = emit.integer(0);
      emit.loop(zero, count, 1, [&](Value i) {
        emitTiles(part, emit.add(sample, i), zero, emit.integer(residue.rows), {zero, 0}, residue.columns,
                  emit.mul(i, all));
      });
      emitProducts(part, emit.mul(count, all));
    });
  } else {
    emit.loop(first, end, 1, [&](Value sample) {
      emit.loop(emit.integer(0), emit.integer(residue.rows), size.rows, [&](Value row) {
        Value rows = emit.min(emit.integer(size.rows), emit.sub(emit.integer(residue.rows), row));
        forColumnBlocks(emit, product, residue, [&](BlockColumn column, int64_t columns) {
          emitTiles(part, sample, row, rows, column, columns, emit.integer(0));
          emitProducts(part, emit.mul(emit.div(rows, emit.integer(2)), columns / 2));
        });
      });
    });
  }
  emitTaps(part);
}

void WinogradGradient::store(const Part &part) {
  Type f32 = emit.realType();
  int64_t channels = product.source.channels, filters = product.result.channels;
  forPanelsOf(part, [&](Value offset, Panel panel) {
    int64_t width = panel.width();
    Value mask = panel.last < lanes ? emit.maskBelow(panel.last) : Value(), filter = emit.add(part.column, offset);
    emit.loop(emit.integer(0), part.used, 1, [&](Value i) {
      Value channel = emit.add(emit.add(part.window, part.from), i),
            line = emit.add(emit.mul(offset, windowSize * taps), emit.mul(i, taps * width));
      for (int64_t tap = 0; tap < taps; ++tap) {
        Value from = emit.address(sums, f32, line, tap * width),
              to = emit.address(result, f32, emit.add(emit.mul(channel, filters), filter),
                                residue.taps[tap].matrix * channels * filters);
        for (int64_t vector = 0; vector < panel.vectors; ++vector)
          emit.storeLanes(emit.loadLanes(f32, emit.address(from, f32, vector * lanes)),
                          emit.address(to, f32, vector * lanes), vector + 1 == panel.vectors ? mask : Value());
      }
    });
  });
}

void WinogradGradient::emitPart(const Part &part, const Shards &shards) {
  Type f32 = emit.realType();
  int64_t floats = windowSize * taps * wideSize;
  Value stack = emit.array(f32, floats * shards.levels), rows = emit.mul(part.used, taps);
  // Calls `each` for every vector of the taps' sums, with its address and the address of the vector at a level of the
  // stack.
  auto forSums = [&](Value level, llvm::function_ref<void(Value address, Value saved)> each) {
    Value saved = emit.address(stack, f32, emit.mul(level, floats));
    forPanelsOf(part, [&](Value offset, Panel panel) {
      Value first = emit.mul(offset, windowSize * taps);
      forVectors(emit, panel, rows, [&](Value index) {
        Value at = emit.add(first, index);
        each(emit.address(sums, f32, at), emit.address(saved, f32, at));
      });
    });
  };
  auto combine = [&](Value level) {
    forSums(level, [&](Value address, Value saved) {
      emit.storeLanes(arith::AddFOp::create(emit, emit.loadLanes(f32, saved), emit.loadLanes(f32, address)), address);
    });
  };
  auto push = [&](Value level) {
    forSums(level, [&](Value address, Value saved) { emit.storeLanes(emit.loadLanes(f32, address), saved); });
  };
  emitTreeInMemory(emit, shards, [&](Value first, Value end) { emitSamples(part, first, end); }, combine, push);
  store(part);
}

void WinogradGradient::forPanelsOf(const Part &part, llvm::function_ref<void(Value, Panel)> body) {
  forPanels(emit, product.result.groupChannels, part.column, emit.add(part.column, panelColumns),
            [&](Value column, Panel panel) { body(emit.sub(column, part.column), panel); });
}

// Calls `body` for parts of the tiles [begin, end) of the grid: panels of filters, then windows of channels.
void WinogradGradient::forParts(Value begin, Value end, llvm::function_ref<void(const Part &)> body) {
  int64_t channels = product.source.groupChannels;
  int64_t units = llvm::divideCeil(channels, gridChannels);
  emit.loop(emit.div(begin, emit.integer(units)), emit.ceilDiv(end, units), 1, [&](Value wide) {
    Value offset = emit.mul(wide, units), column = emit.mul(wide, panelColumns);
    Value from = emit.mul(emit.max(emit.sub(begin, offset), emit.integer(0)), gridChannels),
          to = emit.min(emit.mul(emit.sub(end, offset), gridChannels), emit.integer(channels));
    auto window = [&](Value first, int64_t count) {
      Value low = emit.max(emit.sub(from, first), emit.integer(0)),
            high = emit.min(emit.sub(to, first), emit.integer(count));
      emit.when(emit.less(low, high), [&] { body({column, first, count, low, emit.sub(high, low)}); });
    };
    int64_t whole = channels / windowSize * windowSize;
    if (whole > 0)
      emit.loop(emit.integer(0), emit.integer(whole), windowSize, [&](Value first) { window(first, windowSize); });
    if (whole < channels)
      window(emit.integer(whole), channels - whole);
  });
}

void WinogradGradient::run() {
  Shards shards = shardsOf(kernel);
  forParts(kernel.tileBegin, kernel.tileEnd, [&](const Part &part) { emitPart(part, shards); });
}

void WinogradGradient::runSample() {
  forParts(emit.integer(0), emit.integer(tiles(product)), [&](const Part &part) {
    emitSamples(part, emit.integer(0), emit.integer(1));
    store(part);
  });
}
