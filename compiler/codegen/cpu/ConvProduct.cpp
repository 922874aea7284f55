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
    int64_t channels = boundChannels.value_or(needsHaloBuffer(residue) ? source.groupChannels : 0);
    return residue.reachRows(rows) * residue.reachColumns(columns) * channels <= haloBufferFloats;
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
    for (int64_t c = 0; c < tapDepth(); c += adjacentTerms())
      for (const Tap &tap : ArrayRef(residue.taps).slice(row, columns))
        for (int64_t term = 0; term < adjacentTerms(); ++term)
          order.push_back({tap, c + term});
  return order;
}

// Whether the pixels of residue `other` are `distance` columns after the pixels of `first`, and are computed from the
// same elements, with the matrices of taps `distance` columns on.
static bool isBeside(const Residue &first, const Residue &other, int64_t distance) {
  auto same = [&](const Tap &a, const Tap &b) {
    return a.row == b.row && a.column == b.column && b.matrix == a.matrix + distance;
  };
  return other.rows == first.rows && other.columns == first.columns && other.firstRow == first.firstRow &&
         other.firstColumn == first.firstColumn + distance &&
         std::equal(first.taps.begin(), first.taps.end(), other.taps.begin(), other.taps.end(), same);
}

Product mtc::joinPixels(Product product, int64_t pixels) {
  int64_t count = product.residues.size();
  if (pixels == 1 || product.groups > 1 || product.depthwise || product.winograd || count % pixels ||
      product.result.columns % pixels)
    return product;
  SmallVector<Residue> residues;
  for (int64_t i = 0; i < count; ++i) {
    Residue residue = product.residues[i];
    if (i % pixels) {
      if (!isBeside(product.residues[i - i % pixels], residue, i % pixels))
        return product;
      continue;
    }
    if (residue.firstColumn != 0 || residue.columnStride != pixels)
      return product;
    residue.columnStride = 1;
    residues.push_back(residue);
  }
  product.residues = residues;
  product.joined = pixels;
  product.result.columns /= pixels;
  product.result.channels *= pixels;
  product.result.groupChannels *= pixels;
  return product;
}

Product mtc::withTerms(Product product, Terms terms) {
  if (terms == Terms::single || product.depthwise)
    return product;
  product.terms = terms;
  product.elements = product.source;
  product.boundChannels = product.source.groupChannels;
  if (terms == Terms::pairs && product.source.groupChannels % 2 == 0)
    product.element = {}; // pairs are read as they lie in memory
  product.source.groupChannels = unitsOf(terms, product.source.groupChannels);
  product.source.channels = product.groups * product.source.groupChannels;
  return product;
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

namespace {
// How elements become the floats of a halo buffer.
struct Conversion {
  Type element;
  Terms terms = Terms::single;
  const SecondSample *second = nullptr;
};
} // namespace

// Stores `count` elements from `from` on, as floats; if `from` is null, zeros. With terms, stores pairs or swapped
// floats, the last of which is zero if `count` is odd.
static void emitFloats(Emitter &emit, const Conversion &how, Value from, Value to, int64_t count) {
  Type f32 = emit.realType(), i16 = emit.getI16Type();
  auto maskOf = [&](int64_t elements) { return elements < lanes ? emit.maskBelow(elements) : Value(); };
  auto one = [&](Value index, int64_t most) {
    auto load = [&](Type type, Value start) {
      return emit.loadLanes(type, emit.address(start, type, index), maskOf(most));
    };
    if (!from)
      return emit.storeLanes(emit.zeros(emit.vectorOf(f32)), emit.address(to, f32, index), maskOf(most));
    if (how.second) {
      Value other = load(i16, emit.address(from, i16, how.second->distance));
      other = arith::SelectOp::create(emit, how.second->alone, missingTerms(emit, TermSide::left), other);
      return storePairs(emit, Terms::pairs, load(i16, from), other, emit.address(to, f32, index), 0, maskOf(most));
    }
    if (how.terms == Terms::pairs)
      return emit.storeLanes(load(i16, from), emit.address(to, i16, index), maskOf(2 * unitsOf(how.terms, most)));
    Value taken = load(how.element, from);
    if (how.terms == Terms::swapped)
      taken = exchanged(emit, taken);
    emit.storeLanes(taken, emit.address(to, f32, index), maskOf(unitsOf(how.terms, most)));
  };
  int64_t whole = count / lanes * lanes;
  if (whole > 0)
    emit.loop(emit.integer(0), emit.integer(whole), lanes, [&](Value index) { one(index, lanes); });
  if (whole < count)
    one(emit.integer(whole), count - whole);
}

void mtc::fillHaloBuffer(Emitter &emit, const Product &product, const Residue &residue, Value source,
                         Value firstChannel, Value row, int64_t column, Value rows, int64_t columns, Value haloBuffer,
                         const SecondSample *second) {
  Type f32 = emit.realType(), element = product.element ? product.element : f32;
  const Image &image = product.memory();
  Conversion how{element, product.element ? product.terms : Terms::single, second}, zeros{f32};
  int64_t width = residue.reachColumns(columns), stride = product.rowStride(residue);
  int64_t channels = product.source.groupChannels, taken = image.groupChannels; // stored, and read
  int64_t first = column * residue.columnStep + residue.lowColumn;
  int64_t left = std::clamp<int64_t>(-first, 0, width), right = std::clamp<int64_t>(image.columns - first, left, width);
  Value top = emit.add(emit.mul(row, residue.rowStep), residue.lowRow);
  Value height = emit.add(emit.mul(rows, residue.rowStep), residue.highRow - residue.lowRow + 1 - residue.rowStep);
  bool adjacent = taken == image.channels && (how.terms == Terms::single || taken % 2 == 0);
  emit.loop(emit.integer(0), height, 1, [&](Value i) {
    Value line = emit.add(top, i), to = emit.address(haloBuffer, f32, emit.mul(i, stride * channels));
    Value inside =
        arith::AndIOp::create(emit, emit.less(emit.integer(-1), line), emit.less(line, emit.integer(image.rows)));
    auto copy = [&] {
      emitFloats(emit, zeros, Value(), to, left * channels);
      Value from = emit.address(emit.address(source, element, emit.mul(line, image.columns * image.channels)), element,
                                firstChannel, (first + left) * image.channels);
      Value middle = emit.address(to, f32, left * channels);
      if (adjacent)
        emitFloats(emit, how, from, middle, (right - left) * taken);
      else
        emit.loop(emit.integer(0), emit.integer(right - left), 1, [&](Value j) {
          emitFloats(emit, how, emit.address(from, element, emit.mul(j, image.channels)),
                     emit.address(middle, f32, emit.mul(j, channels)), taken);
        });
      emitFloats(emit, zeros, Value(), emit.address(to, f32, right * channels), (width - right) * channels);
    };
    emit.when(inside, copy, [&] { emitFloats(emit, zeros, Value(), to, width * channels); });
  });
}
