// SPDX-License-Identifier: Apache-2.0
//
// Workgroup memory of an attention block: sizes, copies to it, and stores of sums from it.
#include "compiler/codegen/gpu/Attention.h"
#include "compiler/codegen/gpu/Product.h"
#include "compiler/codegen/gpu/TensorCores.h"
#include "dialects/mt/VectorExpr.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mtc;

// ---- sizes

static int64_t whole(int64_t size) { return ceilDiv(size, 16) * 16; }

// The padding puts the rows of a matrix for ldmatrix, and adjacent rows for FMAs, into different banks, at multiples of
// 16 bytes.
int64_t AttentionBlock::strideOf(Way way, int64_t size) const {
  return size ? whole(size) + (way == Way::halves ? 8 : 4) : 0;
}
int64_t AttentionBlock::lineBytes(Way way) const {
  return (strideOf(way, form.keySize) + strideOf(way, form.valueSize)) * (way == Way::halves ? 2 : 4);
}

// The bits of `singles` and `halves` depend on the number of rows too.
AttentionBlock::Step AttentionBlock::stepOf(Way way, bool isGradient) const {
  // As many rows as fit in the registers that scores and sums leave.
  if (way != Way::halves)
    return {isGradient && form.keySize + form.valueSize > 160 ? 16 : 32, 1};
  int64_t own = isGradient ? attentionLines : 0;
  Step choices[] = {{64, 2}, {32, 2}, {32, 1}, {16, 1}};
  for (Step step : ArrayRef(choices).drop_front(isGradient ? 1 : 0))
    if ((own + step.buffers * step.lines) * lineBytes(way) + step.buffers * step.lines * 8 <= maxSharedBytes)
      return step;
  return choices[3];
}

int64_t AttentionBlock::sharedBytes(Way way, bool isGradient) const {
  auto [lines, buffers] = stepOf(way, isGradient);
  int64_t bytes = buffers * lines * (lineBytes(way) + (isGradient ? 8 : 0));
  if (way == Way::halves && isGradient)
    bytes += attentionLines * lineBytes(way);
  if (way == Way::halves) // the queries are there first
    bytes = std::max(bytes, attentionLines * strideOf(way, form.keySize) * 2);
  return way == Way::fma ? bytes + attentionLines * (lines + 4) * 4 : bytes;
}
int64_t AttentionBlock::sharedBytes(bool isGradient) const {
  int64_t bytes = sharedBytes(Way::fma, isGradient);
  if (kernel.precision == Precision::f32)
    return bytes;
  return std::max(bytes, sharedBytes(Emitter::isHalf(element) ? Way::halves : Way::singles, isGradient));
}

WarpTile AttentionBlock::tileOfSize(int64_t size) const {
  return way == Way::fma ? WarpTile{ceilDiv(size, 16), 4} : WarpTile{whole(size) / 8, 2};
}

// ---- copies

int64_t mtc::chunkOfSize(int64_t size, int64_t most) {
  while (size % most)
    most /= 2;
  return most;
}

Value mtc::tf32(Emitter &emit, Value number) {
  return NVVM::ConvertFloatToTF32Op::create(emit, emit.getI32Type(), number, NVVM::FPRoundingMode::RNA,
                                            NVVM::SaturationMode::NONE, /*relu=*/false);
}

void AttentionBlock::copyLines(const HeadLines &from, Value first, int64_t lines, const LinePanel &to) {
  int64_t threads = kernel.gpu.threads, chunk = chunkOfSize(from.size, maxAccessBytes / emit.bytes(element));
  if (way != Way::halves)
    chunk = std::min<int64_t>(chunk, chunkElements);
  int64_t across = from.size / chunk, total = lines * across;
  bool async = way == Way::halves && chunk * emit.bytes(element) == maxAccessBytes;
  auto copy = [&](Value index) {
    Value line = emit.div(index, emit.integer(across)), column = emit.mul(emit.rem(index, emit.integer(across)), chunk);
    Value position = emit.add(first, line), there = emit.less(position, emit.integer(from.count));
    if (from.count % lines)
      position = emit.min(position, emit.integer(from.count - 1));
    Value source = at(from.base, emit.add(emit.mul(position, from.stride), column));
    Value target = emit.address(to.memory, panelType(), emit.add(emit.mul(line, to.stride), column));
    if (async)
      return copyAsync(emit, target, source, there);
    Value loaded = orZero(emit, there, loadChunk(emit, way == Way::halves ? panelType() : element, source, chunk));
    Emitter::Values elements;
    for (int64_t j = 0; j < chunk; ++j) {
      Value one = chunk == 1 ? loaded : emit.extract(loaded, j);
      if (way == Way::singles)
        one = arith::BitcastOp::create(emit, emit.getF32Type(), tf32(emit, one));
      elements.push_back(one);
    }
    if (way != Way::halves)
      return storeChunk(emit, elements, target);
    for (auto [j, one] : llvm::enumerate(elements))
      emit.store(one, emit.address(target, panelType(), static_cast<int64_t>(j)));
  };
  for (int64_t begin = 0; begin < total; begin += threads) {
    Value index = emit.add(kernel.thread, begin);
    if (begin + threads <= total)
      copy(index);
    else
      emit.when(emit.less(index, emit.integer(total)), [&] { copy(index); });
  }
}

void AttentionBlock::endCopies() {
  commitCopies(emit);
  awaitCopies(emit, 0);
  kernel.barrier();
}

void AttentionBlock::clearPads(const LinePanel &panel, int64_t lines) {
  int64_t pad = whole(panel.size) - panel.size;
  if (way == Way::fma || pad == 0)
    return;
  kernel.forThreads(lines * pad, [&](Value index) {
    Value line = emit.div(index, emit.integer(pad)), column = emit.add(emit.rem(index, emit.integer(pad)), panel.size);
    Value to = emit.address(panel.memory, panelType(), emit.add(emit.mul(line, panel.stride), column));
    emit.store(emit.zeros(panelType()), to);
  });
}

// ---- results

// Stores adjacent elements of a row. A pair of 16-bit elements is one access if its address is aligned.
void AttentionBlock::storeElements(ValueRange values, int64_t size, Value to, Value column, int64_t piece) {
  int64_t count = static_cast<int64_t>(values.size());
  auto put = [&] {
    bool aligned = size % count == 0;
    if (aligned && kernel.precision == Precision::tensor && Emitter::isHalf(element)) {
      for (int64_t i = 0; i < count; i += 2)
        emit.store(packHalves(emit, element, values[i], values[i + 1]), emit.address(to, element, piece + i));
      return;
    }
    if (aligned && !Emitter::isHalf(element))
      return storeChunk(emit, values, emit.address(to, element, piece));
    for (auto [i, value] : llvm::enumerate(values)) {
      auto number = static_cast<int64_t>(i);
      auto one = [&, value = value] {
        Value rounded =
            Emitter::isHalf(element) ? mt::roundTo(mt::VectorExpr(emit, emit.getLoc(), value), element).value() : value;
        emit.store(element, rounded, emit.address(to, element, piece + number));
      };
      if (aligned)
        one();
      else
        emit.when(emit.less(emit.add(column, piece + number), emit.integer(size)), one);
    }
  };
  if (piece + 4 * count <= size || size % count)
    put();
  else
    emit.when(emit.less(emit.add(column, piece), emit.integer(size)), put);
}

void AttentionBlock::storeSums(ValueRange sums, int64_t size, ValueRange scales, const HeadLines &to, Value first) {
  WarpTile tile = tileOfSize(size);
  Value column = emit.mul(pair, tile.wide);
  for (int64_t half : {0, 1}) {
    Value position = emit.add(emit.add(first, warpLine), emit.add(group, 8 * half));
    emit.when(emit.less(position, emit.integer(to.count)), [&] {
      Value line = at(to.base, emit.add(emit.mul(position, to.stride), column));
      for (int64_t piece = 0; piece < tile.pieces; ++piece) {
        Emitter::Values values;
        for (Value sum : sums.slice((2 * piece + half) * tile.wide, tile.wide))
          values.push_back(times(sum, scales[half]));
        storeElements(values, size, line, column, piece * 4 * tile.wide);
      }
    });
  }
}
