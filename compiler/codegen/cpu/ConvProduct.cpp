// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cpu/ConvProduct.h"

using namespace mlir;
using namespace mtc;

bool Product::needsHaloBuffer(const Residue &residue) const {
  if (residue.taps.empty())
    return false;
  if (element)
    return true;
  return residue.lowRow < 0 || residue.lowColumn < 0 ||
         residue.lowRow + residue.reachRows(residue.rows) > source.rows ||
         residue.lowColumn + residue.reachColumns(residue.columns) > source.columns;
}

// A block of full tiles of 2 x 2 positions.
static PixelBlock winogradBlock(const Residue &residue) {
  int64_t tiles = residue.columns / 2, parts = ceilDiv(tiles, winogradPositions / 4);
  if (parts > 1)
    return {2, 2 * ceilDiv(tiles, parts)};
  int64_t rows = residue.rows / 2, most = std::min(rows, winogradPositions / 4 / tiles);
  return {2 * ceilDiv(rows, ceilDiv(rows, most)), residue.columns};
}

PixelBlock Product::blockOf(const Residue &residue) const {
  if (winograd)
    return winogradBlock(residue);
  auto fits = [&](int64_t rows, int64_t columns) {
    return !needsHaloBuffer(residue) ||
           residue.reachRows(rows) * residue.reachColumns(columns) * source.groupChannels <= haloBufferFloats;
  };
  int64_t parts = ceilDiv(residue.columns, blockPositions), columns = ceilDiv(residue.columns, parts);
  // A row is divided only if it must be; the halo buffer of a single position may be larger than the limit.
  while (columns > 16 && !fits(1, columns))
    columns = ceilDiv(residue.columns, ++parts);
  if (parts > 1)
    return {1, columns};
  int64_t rows = std::max<int64_t>(1, std::min(residue.rows, blockPositions / residue.columns));
  while (rows > 1 && !fits(rows, columns))
    --rows;
  return {rows, columns};
}

SmallVector<std::pair<Tap, int64_t>> Product::chain(const Residue &residue) const {
  SmallVector<std::pair<Tap, int64_t>> order;
  int64_t columns = residue.tapColumns(), count = residue.taps.size();
  for (int64_t row = 0; row < count; row += columns)
    for (int64_t c = 0; c < tapDepth(); ++c)
      for (const Tap &tap : ArrayRef(residue.taps).slice(row, columns))
        order.push_back({tap, c});
  return order;
}

int64_t Product::rowBlocks() const {
  int64_t most = 1;
  for (const Residue &residue : residues)
    most = std::max(most, ceilDiv(residue.rows, blockOf(residue).rows));
  return most;
}

static void setBounds(Residue &residue) {
  for (auto [i, tap] : llvm::enumerate(residue.taps)) {
    residue.lowRow = i ? std::min(residue.lowRow, tap.row) : tap.row;
    residue.highRow = i ? std::max(residue.highRow, tap.row) : tap.row;
    residue.lowColumn = i ? std::min(residue.lowColumn, tap.column) : tap.column;
    residue.highColumn = i ? std::max(residue.highColumn, tap.column) : tap.column;
  }
}

// Replaces groups of one channel and one filter by one group of all channels, computed element by element.
static Product joinGroups(Product product) {
  if (product.groups == 1 || product.source.groupChannels != 1 || product.result.groupChannels != 1)
    return product;
  product.groups = 1;
  product.source.groupChannels = product.source.channels;
  product.result.groupChannels = product.result.channels;
  product.depthwise = true;
  return product;
}

mt::Convolution mtc::flattened(const mt::Convolution &convolution) {
  auto plain = [](const mt::Window &window) {
    return window.taps == 1 && window.stride == 1 && window.low == 0 && window.high == 0;
  };
  mt::Convolution flat = convolution;
  if (!plain(flat.rows) || !plain(flat.columns))
    return flat;
  flat.columns.inputs *= flat.rows.inputs;
  flat.columns.outputs *= flat.rows.outputs;
  flat.rows.inputs = flat.rows.outputs = 1;
  return flat;
}

Product mtc::forwardProduct(const mt::Convolution &given) {
  mt::Convolution convolution = flattened(given);
  const mt::Window &rows = convolution.rows, &columns = convolution.columns;
  Residue residue{rows.outputs, columns.outputs, rows.stride, columns.stride, 0, 0, 1, 1, {}};
  for (int64_t kh = 0; kh < rows.taps; ++kh)
    for (int64_t kw = 0; kw < columns.taps; ++kw)
      residue.taps.push_back({rows.at(0, kh), columns.at(0, kw), kh * columns.taps + kw});
  setBounds(residue);
  return joinGroups({{rows.inputs, columns.inputs, convolution.channels, convolution.groupChannels()},
                     {rows.outputs, columns.outputs, convolution.filters, convolution.groupFilters()},
                     convolution.groups,
                     {residue}});
}

namespace {
// The inputs first, first + stride ... of a window along one axis, with the taps that read them. Taps are in the order
// of increasing outputs, so they decrease.
struct AxisResidue {
  int64_t first, count;
  SmallVector<std::pair<int64_t, int64_t>> taps; // output that reads the first input, and tap
};
} // namespace

static SmallVector<AxisResidue> residuesOf(const mt::Window &window) {
  SmallVector<AxisResidue> residues;
  for (int64_t first = 0; first < std::min(window.stride, window.inputs); ++first) {
    AxisResidue residue{first, ceilDiv(window.inputs - first, window.stride), {}};
    for (int64_t tap = window.taps - 1; tap >= 0; --tap)
      if (int64_t distance = first + window.low - tap * window.dilation; distance % window.stride == 0)
        residue.taps.push_back({distance / window.stride, tap});
    residues.push_back(residue);
  }
  return residues;
}

Product mtc::gradientProduct(const mt::Convolution &given) {
  mt::Convolution convolution = flattened(given);
  const mt::Window &rows = convolution.rows, &columns = convolution.columns;
  Product product{{rows.outputs, columns.outputs, convolution.filters, convolution.groupFilters()},
                  {rows.inputs, columns.inputs, convolution.channels, convolution.groupChannels()},
                  convolution.groups,
                  {}};
  for (const AxisResidue &down : residuesOf(rows))
    for (const AxisResidue &along : residuesOf(columns)) {
      Residue residue{down.count, along.count, 1, 1, down.first, along.first, rows.stride, columns.stride, {}};
      for (auto [row, kh] : down.taps)
        for (auto [column, kw] : along.taps)
          residue.taps.push_back({row, column, kh * columns.taps + kw});
      setBounds(residue);
      product.residues.push_back(residue);
    }
  return joinGroups(std::move(product));
}

void mtc::forColumnBlocks(Emitter &emit, const Product &product, const Residue &residue,
                          llvm::function_ref<void(BlockColumn, int64_t)> body) {
  int64_t size = product.blockOf(residue).columns, looped = 0;
  if (!product.needsHaloBuffer(residue) && residue.columns >= 2 * size) {
    looped = residue.columns / size * size;
    emit.loop(emit.integer(0), emit.integer(looped), size, [&](Value column) { body({column, 0}, size); });
  }
  for (int64_t column = looped; column < residue.columns; column += size)
    body({emit.integer(column), column}, std::min(size, residue.columns - column));
}

// Copies `count` floats from `from` to `to`; if `from` is null, stores zeros.
static void emitFloats(Emitter &emit, Type element, Value from, Value to, int64_t count) {
  Type f32 = emit.getF32Type();
  int64_t whole = count / lanes * lanes;
  auto one = [&](Value index, Value mask) {
    Value taken =
        from ? emit.loadLanes(element, emit.address(from, element, index), mask) : emit.zeros(emit.vectorOf(f32));
    emit.storeLanes(taken, emit.address(to, f32, index), mask);
  };
  if (whole > 0)
    emit.loop(emit.integer(0), emit.integer(whole), lanes, [&](Value index) { one(index, Value()); });
  if (whole < count)
    one(emit.integer(whole), emit.maskBelow(count - whole));
}

void mtc::fillHaloBuffer(Emitter &emit, const Product &product, const Residue &residue, Value source,
                         Value firstChannel, Value row, int64_t column, Value rows, int64_t columns, Value haloBuffer) {
  Type f32 = emit.getF32Type(), element = product.element ? product.element : f32;
  const Image &image = product.source;
  int64_t width = residue.reachColumns(columns), stride = product.rowStride(residue), channels = image.groupChannels;
  int64_t first = column * residue.columnStep + residue.lowColumn;
  int64_t left = std::clamp<int64_t>(-first, 0, width), right = std::clamp<int64_t>(image.columns - first, left, width);
  Value top = emit.add(emit.mul(row, residue.rowStep), residue.lowRow);
  Value height = emit.add(emit.mul(rows, residue.rowStep), residue.highRow - residue.lowRow + 1 - residue.rowStep);
  emit.loop(emit.integer(0), height, 1, [&](Value i) {
    Value line = emit.add(top, i), to = emit.address(haloBuffer, f32, emit.mul(i, stride * channels));
    Value inside =
        arith::AndIOp::create(emit, emit.less(emit.integer(-1), line), emit.less(line, emit.integer(image.rows)));
    auto copy = [&] {
      emitFloats(emit, f32, Value(), to, left * channels);
      Value from = emit.address(emit.address(source, element, emit.mul(line, image.columns * image.channels)), element,
                                firstChannel, (first + left) * image.channels);
      Value middle = emit.address(to, f32, left * channels);
      if (channels == image.channels)
        emitFloats(emit, element, from, middle, (right - left) * channels);
      else
        emit.loop(emit.integer(0), emit.integer(right - left), 1, [&](Value j) {
          emitFloats(emit, element, emit.address(from, element, emit.mul(j, image.channels)),
                     emit.address(middle, f32, emit.mul(j, channels)), channels);
        });
      emitFloats(emit, f32, Value(), emit.address(to, f32, right * channels), (width - right) * channels);
    };
    emit.when(inside, copy, [&] { emitFloats(emit, f32, Value(), to, width * channels); });
  });
}
