// SPDX-License-Identifier: Apache-2.0
//
// Loops over the pixels of a row and, inside of them, over the last axes. Operands that have only the last axes are
// read again for each pixel. A sum over the pixels has 16 partial sums in memory: pixel i is added to partial sum i mod
// 16, and at the end they are reduced in the order 8, 4, 2, 1. Partial sums without a pixel would change no other one,
// so of fewer pixels there are fewer. A loop over few pixels is unrolled within that over the last axes, with partial
// sums in registers.
#include "compiler/codegen/common/Rules.h"
#include "compiler/codegen/cpu/Lines.h"
#include "compiler/codegen/cpu/Rows.h"

using namespace mlir;
using namespace mtc;

// Largest number of chunks of a period that are unrolled; more chunks are a loop.
static constexpr int64_t maxUnrolled = 4;

// Largest number of pixels, and of their chunks, that are unrolled together.
static constexpr int64_t maxPixels = 4, maxPixelChunks = 8;

static int64_t padded(int64_t period) { return (period + lanes - 1) / lanes * lanes; }

// Number of partial sums for this number of pixels, a power of two.
static int64_t partialSums(int64_t pixels) { return std::min<int64_t>(lanes, llvm::PowerOf2Ceil(pixels)); }

LogicalResult RowEmitter::runPeriods(const RowStatement &statement, SmallVectorImpl<Value> &sums) {
  int64_t period = statement.period, whole = period / lanes * lanes, pixels = statement.count / period;
  // Sums of all elements are added in the order of the pixels.
  if (sums.empty() && pixels <= maxPixels && pixels * padded(period) <= maxPixelChunks * lanes)
    return runPixels(statement);
  LogicalResult result = success();
  beginLines(statement);
  Emitter::Values ends =
      emit.loop(emit.integer(0), emit.integer(pixels), 1, sums, [&](Value pixel, ValueRange carried) {
        Emitter::Values next(carried);
        Value first = emit.mul(pixel, period);
        auto chunk = [&](Value inner, Value mask) {
          if (failed(runChunk(statement, {emit.add(first, inner), mask, inner, pixel, false}, next)))
            result = failure();
        };
        if (whole > maxUnrolled * lanes)
          next = emit.loop(emit.integer(0), emit.integer(whole), lanes, next, [&](Value inner, ValueRange values) {
            next.assign(values.begin(), values.end());
            chunk(inner, Value());
            return next;
          });
        else
          for (int64_t inner = 0; inner < whole; inner += lanes)
            chunk(emit.integer(inner), Value());
        if (whole < period)
          forTail(statement, period - whole, [&](Value mask) { chunk(emit.integer(whole), mask); });
        return next;
      });
  sums.assign(ends.begin(), ends.end());
  endLines(statement);
  return result;
}

// Combines partial sums, a power of two, in the order 8, 4, 2, 1.
static Value combined(Emitter &emit, mt::ReduceOp op, SmallVector<Value> values) {
  for (int64_t half = values.size() / 2; half >= 1; half /= 2)
    for (int64_t i = 0; i < half; ++i)
      values[i] = combine(emit, op.getKind(), values[i], values[i + half]);
  return values[0];
}

LogicalResult RowEmitter::runPixels(const RowStatement &statement) {
  int64_t period = statement.period, pixels = statement.count / period;
  LogicalResult result = success();
  auto chunk = [&](int64_t inner, Value mask) {
    Held held;
    for (Operation *op : statement.operations)
      if (leadingPeriod(op))
        held.sums[op].assign(partialSums(pixels), emit.splat(identityOf(emit, cast<mt::ReduceOp>(op))));
    SmallVector<Value> none;
    Value within = emit.integer(inner);
    for (held.pixel = 0; held.pixel < pixels && succeeded(result); ++held.pixel)
      result = runChunk(statement, {emit.integer(held.pixel * period + inner), mask, within, {}, false, &held}, none);
    for (Operation *op : statement.operations) {
      auto reduce = dyn_cast<mt::ReduceOp>(op);
      if (!reduce)
        continue;
      Type element = elementOf(reduce.getResult());
      emit.storeLanes(combined(emit, reduce, held.sums[op]),
                      emit.address(pointerOf(reduce.getResult()), element, inner), mask);
    }
  };
  int64_t whole = period / lanes * lanes;
  for (int64_t inner = 0; inner < whole; inner += lanes)
    chunk(inner, Value());
  if (whole < period)
    forTail(statement, period - whole, [&](Value mask) { chunk(whole, mask); });
  return result;
}

void RowEmitter::beginLines(const RowStatement &statement) {
  for (Operation *op : statement.operations)
    if (leadingPeriod(op)) {
      Value &pointer = lines[op];
      Type element = elementOf(op->getResult(0));
      int64_t count = partialSums(statement.count / statement.period) * padded(statement.period);
      pointer = emit.array(element, count);
      Value start = emit.splat(identityOf(emit, cast<mt::ReduceOp>(op)));
      emit.loop(emit.integer(0), emit.integer(count), lanes,
                [&](Value index) { emit.storeLanes(start, emit.address(lines[op], element, index)); });
    }
}

void RowEmitter::addToLines(mt::ReduceOp op, const Chunk &chunk, Value value) {
  if (chunk.held) {
    Value &sum = chunk.held->sums[op][chunk.held->pixel];
    sum = combine(emit, op.getKind(), sum, value);
    return;
  }
  Type element = elementOf(op.getResult());
  int64_t width = padded(innerCount(op.getResult()));
  Value line = emit.mul(arith::AndIOp::create(emit, chunk.pixel, emit.integer(lanes - 1)), width);
  Value pointer = emit.address(emit.address(lines[op], element, line), element, chunk.inner);
  emit.storeLanes(combine(emit, op.getKind(), emit.loadLanes(element, pointer), value), pointer);
}

void RowEmitter::endLines(const RowStatement &statement) {
  int64_t width = padded(statement.period), whole = statement.period / lanes * lanes,
          sums = partialSums(statement.count / statement.period);
  for (Operation *op : statement.operations) {
    if (!leadingPeriod(op))
      continue;
    auto reduce = cast<mt::ReduceOp>(op);
    Type element = elementOf(reduce.getResult());
    Value from = lines[op], to = pointerOf(reduce.getResult());
    auto fold = [&](Value inner, Value mask) {
      SmallVector<Value> values;
      for (int64_t line = 0; line < sums; ++line)
        values.push_back(
            emit.loadLanes(element, emit.address(emit.address(from, element, line * width), element, inner)));
      emit.storeLanes(combined(emit, reduce, values), emit.address(to, element, inner), mask);
    };
    if (whole > 0)
      emit.loop(emit.integer(0), emit.integer(whole), lanes, [&](Value inner) { fold(inner, Value()); });
    if (whole < statement.period)
      emit.tail(statement.period - whole, [&](Value mask) { fold(emit.integer(whole), mask); });
  }
}
