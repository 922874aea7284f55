// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/gpu/Image.h"

using namespace mlir;
using namespace mtc;

namespace {
// 32-bit arithmetic.
struct Number {
  Emitter *emit;
  Value value;

  Number of(int64_t number) const {
    return {emit, arith::ConstantOp::create(*emit, emit->getI32IntegerAttr(static_cast<int32_t>(number)))};
  }
  Number operator+(Number other) const { return {emit, emit->add(value, other.value)}; }
  Number operator-(Number other) const { return {emit, emit->sub(value, other.value)}; }
  Number operator*(Number other) const { return {emit, emit->mul(value, other.value)}; }
  Number operator/(Number other) const { return {emit, emit->div(value, other.value)}; }
  Number operator%(Number other) const { return {emit, emit->rem(value, other.value)}; }
  Number operator+(int64_t other) const { return other ? *this + of(other) : *this; }
  Number operator*(int64_t other) const { return other == 1 ? *this : *this * of(other); }
  Number operator/(int64_t other) const { return other == 1 ? *this : *this / of(other); }
  Number operator%(int64_t other) const { return other == 1 ? of(0) : *this % of(other); }
  Value operator<(Number other) const { return emit->less(value, other.value); }
  Value operator<(int64_t other) const { return *this < of(other); }
  // 0 <= this < other.
  Value isBelow(int64_t other) const {
    return arith::CmpIOp::create(*emit, arith::CmpIPredicate::ult, value, of(other).value);
  }
  Number where(Value condition, Number otherwise) const {
    return {emit, arith::SelectOp::create(*emit, condition, value, otherwise.value)};
  }
  Value wide() const { return arith::ExtSIOp::create(*emit, emit->getI64Type(), value); }
};

Number narrow(Emitter &emit, Value value) { return {&emit, arith::TruncIOp::create(emit, emit.getI32Type(), value)}; }

// A coordinate that is outside of every image, whatever tap is added.
constexpr int64_t nowhere = -(int64_t(1) << 30);

// Along one axis, index i of the result (of its residue) reads index `i * scale + tap * step + base` for each tap from
// 0 to `taps` - 1. Tap t is tap `firstTap + t * tapStep` of the kernel.
struct Reading {
  int64_t scale, step, inputs;
  Number base, taps, firstTap;
  int64_t tapStep;

  // The number of taps as a divisor: 1 if a residue has no taps.
  Number tapsOrOne() const { return taps.of(1).where(taps < 1, taps); }
};
} // namespace

static Reading readingOf(const mt::Window &window, bool forward, Number residue) {
  Number zero = residue.of(0), all = residue.of(window.taps);
  if (forward)
    return {window.stride, window.dilation, window.inputs, residue.of(-window.low), all, zero, 1};
  if (window.stride == 1)
    return {1, -window.dilation, window.outputs, residue.of(window.low), all, zero, 1};
  Number reach = residue + window.low, first = reach % window.stride;
  Number taps = (all - first + (window.stride - 1)) / window.stride;
  return {1, -1, window.outputs, (reach - first) / window.stride, taps, first, window.stride};
}

static bool areProducts(const mt::Convolution &conv) {
  constexpr int64_t most = int64_t(1) << 31;
  auto count = [](const mt::Window &rows, const mt::Window &columns, bool inputs) {
    return inputs ? rows.inputs * columns.inputs : rows.outputs * columns.outputs;
  };
  bool small = count(conv.rows, conv.columns, true) < most / (128 * conv.channels) &&
               count(conv.rows, conv.columns, false) < most / (128 * conv.filters);
  return small && (conv.groups == 1 || (conv.groupChannels() % 4 == 0 && conv.groupFilters() % 4 == 0 &&
                                        std::min(conv.groupChannels(), conv.groupFilters()) >= 8));
}

bool mtc::isKernelProduct(const mt::Convolution &conv) { return areProducts(conv); }

std::optional<ImageProduct> mtc::imageProductOf(Operation *op) {
  mt::Convolution of = cast<mt::ConvolutionOpInterface>(op).getConvolution();
  if (!areProducts(of))
    return {};
  if (isa<mt::Conv2DOp>(op))
    return ImageProduct{of, true, of.groups,       of.groupFilters(), of.groupChannels(),
                        1,  1,    of.rows.outputs, of.columns.outputs};
  auto plain = [](const mt::Window &window) { return window.stride == 1 || window.dilation == 1; };
  if (!plain(of.rows) || !plain(of.columns))
    return {};
  int64_t down = of.rows.stride, across = of.columns.stride;
  return ImageProduct{of,
                      false,
                      of.groups,
                      of.groupChannels(),
                      of.groupFilters(),
                      down,
                      across,
                      ceilDiv(of.rows.inputs, down),
                      ceilDiv(of.columns.inputs, across)};
}

// Sample, row and column, in the residue, of a row of the tile.
static std::array<Number, 3> pixelOf(BlockKernel &kernel, const ImageBlock &block, Value line) {
  Number pixel = narrow(kernel.emit, kernel.emit.add(block.pixel, line));
  Number index = pixel % block.product.pixels();
  return {pixel / block.product.pixels(), index / block.product.width, index % block.product.width};
}

ImagePosition mtc::imagePosition(BlockKernel &kernel, const ImageBlock &block, Value line) {
  Emitter &emit = kernel.emit;
  const ImageProduct &product = block.product;
  auto [sample, i, j] = pixelOf(kernel, block, line);
  Number row = i * product.down + Number{&emit, block.residueRow},
         column = j * product.across + Number{&emit, block.residueColumn};
  Value which = emit.add(block.sample, sample.wide()), there = emit.less(which, block.end);
  if (product.residues() > 1)
    there = both(emit, there, both(emit, row < product.conv.rows.inputs, column < product.conv.columns.inputs));
  return {which, row.wide(), column.wide(), there};
}

std::pair<Value, Value> mtc::pixelOfResult(Emitter &emit, const ImageBlock &block, Value pixel) {
  const ImageProduct &product = block.product;
  if (product.residues() == 1)
    return {pixel, Value()};
  Number index = narrow(emit, pixel);
  Number row = index / product.width * product.down + Number{&emit, block.residueRow};
  Number column = index % product.width * product.across + Number{&emit, block.residueColumn};
  const mt::Convolution &conv = product.conv;
  Value there = both(emit, row < conv.rows.inputs, column < conv.columns.inputs);
  return {(row * conv.columns.inputs + column).wide(), there};
}

Value mtc::gatheredDepth(BlockKernel &kernel, const ImageBlock &block) {
  Emitter &emit = kernel.emit;
  const ImageProduct &product = block.product;
  Reading rows = readingOf(product.conv.rows, product.forward, {&emit, block.residueRow});
  Reading columns = readingOf(product.conv.columns, product.forward, {&emit, block.residueColumn});
  return (rows.taps * columns.taps * product.channels).wide();
}

ProductSide mtc::gatheredSide(BlockKernel &kernel, const ImageBlock &block, Value images, int64_t depth) {
  Emitter &emit = kernel.emit;
  const ImageProduct &product = block.product;
  Reading rows = readingOf(product.conv.rows, product.forward, {&emit, block.residueRow});
  Reading columns = readingOf(product.conv.columns, product.forward, {&emit, block.residueColumn});
  Type element = elementOf(images);
  Value base = kernel.argument(cast<BlockArgument>(images).getArgNumber());
  int64_t channels = product.channels, pitch = channels * product.groups, chunk = chunkOf(kernel, images, channels);
  Value end = gatheredDepth(kernel, block);
  auto prepare = [&kernel, &emit, element, block, rows, columns, base, channels, images](Value line,
                                                                                         Value k) -> Emitter::Values {
    auto [sample, i, j] = pixelOf(kernel, block, line);
    Value which = emit.add(block.sample, sample.wide()), there = emit.less(which, block.end);
    Value first = emit.add(emit.mul(orZero(emit, there, which), innerCount(images)), emit.mul(block.group, channels));
    Number row = (i * rows.scale + rows.base).where(there, i.of(nowhere)), column = j * columns.scale + columns.base;
    return {emit.address(base, element, first), row.value, column.value, k};
  };
  // If a panel is within one tap, the tap does not depend on the thread.
  bool whole = channels % depth == 0;
  auto locate = [&emit, element, rows, columns, channels, pitch, end,
                 whole](ValueRange kept, ValueRange position) -> ProductSide::Chunk {
    Value k = emit.add(position[0], kept[3]);
    Number from = narrow(emit, whole ? position[0] : k), tap = from / channels, channel = from % channels;
    if (whole)
      channel = channel + narrow(emit, kept[3]);
    Number row = Number{&emit, kept[1]} + tap / columns.tapsOrOne() * rows.step;
    Number column = Number{&emit, kept[2]} + tap % columns.tapsOrOne() * columns.step;
    Value there = both(emit, row.isBelow(rows.inputs), column.isBelow(columns.inputs));
    if (!whole)
      there = both(emit, there, emit.less(k, end));
    Value index = ((row * columns.inputs + column) * pitch + channel).wide();
    return {emit.address(kept[0], element, orZero(emit, there, index)), there};
  };
  return {/*deep=*/true, chunk, element, prepare, locate};
}

ProductSide mtc::filterSide(BlockKernel &kernel, const ImageBlock &block, Value filters) {
  Emitter &emit = kernel.emit;
  const ImageProduct &product = block.product;
  Value first = emit.add(emit.mul(block.group, product.columns), block.column);
  Value end = emit.mul(emit.add(block.group, 1), product.columns), depth = gatheredDepth(kernel, block);
  if (product.forward)
    return matrixAcross(kernel, filters, product.conv.filters, {first, end}, depth);
  // The matrix is [tap, column, filter]; k is (tap of the residue, filter of the group).
  Reading rows = readingOf(product.conv.rows, false, {&emit, block.residueRow});
  Reading columns = readingOf(product.conv.columns, false, {&emit, block.residueColumn});
  Type element = elementOf(filters);
  Value base = kernel.argument(cast<BlockArgument>(filters).getArgNumber());
  int64_t channels = product.channels, chunk = chunkOf(kernel, filters, channels), taps = product.conv.columns.taps;
  int64_t pitch = product.conv.filters, lines = product.columns;
  auto prepare = [&emit, element, block, base, channels, pitch, lines](Value line, Value k) -> Emitter::Values {
    Value column = emit.add(block.column, line), there = emit.less(column, emit.integer(lines));
    Value index = emit.add(emit.mul(orZero(emit, there, column), pitch), emit.mul(block.group, channels));
    return {emit.address(base, element, index), there, k};
  };
  auto locate = [&emit, element, rows, columns, channels, taps, pitch, lines,
                 depth](ValueRange kept, ValueRange position) -> ProductSide::Chunk {
    Value k = emit.add(position[0], kept[2]), there = both(emit, kept[1], emit.less(k, depth));
    Number from = narrow(emit, k), tap = from / channels;
    Number row = rows.firstTap + tap / columns.tapsOrOne() * rows.tapStep;
    Number column = columns.firstTap + tap % columns.tapsOrOne() * columns.tapStep;
    Value index = emit.add(emit.mul((row * taps + column).wide(), lines * pitch), (from % channels).wide());
    return {emit.address(kept[0], element, orZero(emit, there, index)), there};
  };
  return {/*deep=*/true, chunk, element, prepare, locate};
}

ProductSide mtc::windowSide(BlockKernel &kernel, const mt::Convolution &conv, Value images, Value first, Value group,
                            Value from, Value end) {
  Emitter &emit = kernel.emit;
  Type element = elementOf(images);
  Value base = kernel.argument(cast<BlockArgument>(images).getArgNumber());
  int64_t channels = conv.groupChannels(), chunk = chunkOf(kernel, images, channels),
          lines = conv.rows.taps * conv.columns.taps * channels;
  auto prepare = [&emit, element, base, first, group, conv, channels, lines](Value line, Value k) -> Emitter::Values {
    Number index = narrow(emit, emit.add(first, line)), tap = index / channels;
    Value there = index < lines;
    Number row = (tap / conv.columns.taps * conv.rows.dilation + -conv.rows.low).where(there, index.of(nowhere));
    Number column = tap % conv.columns.taps * conv.columns.dilation + -conv.columns.low;
    Value channel = emit.add(emit.mul(group, channels), (index % channels).wide());
    return {emit.address(base, element, channel), row.value, column.value, k};
  };
  int64_t pixels = conv.rows.outputs * conv.columns.outputs, image = innerCount(images);
  Value firstPixel = emit.mul(from, pixels);
  auto locate = [&emit, element, conv, pixels, image, from, firstPixel,
                 end](ValueRange kept, ValueRange position) -> ProductSide::Chunk {
    Value k = emit.add(position[0], kept[3]);
    Number pixel = narrow(emit, emit.sub(k, firstPixel)), rest = pixel % pixels;
    Number row = rest / conv.columns.outputs * conv.rows.stride + Number{&emit, kept[1]};
    Number column = rest % conv.columns.outputs * conv.columns.stride + Number{&emit, kept[2]};
    Value there = both(emit, row.isBelow(conv.rows.inputs), column.isBelow(conv.columns.inputs));
    there = both(emit, there, emit.less(k, end));
    Value sample = emit.add(from, (pixel / pixels).wide());
    Value index = emit.add(emit.mul(sample, image), ((row * conv.columns.inputs + column) * conv.channels).wide());
    return {emit.address(kept[0], element, orZero(emit, there, index)), there};
  };
  return {/*deep=*/false, chunk, element, prepare, locate};
}
