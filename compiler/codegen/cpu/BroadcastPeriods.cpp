// SPDX-License-Identifier: Apache-2.0
//
// Loops over the pixels of a row and, inside of them, over the last axes. Operands that have only the last axes are
// read again for each pixel. A sum over the pixels has 16 partial sums in memory: pixel i is added to partial sum i mod
// 16, and at the end they are reduced in the order 8, 4, 2, 1. Partial sums without a pixel would change no other one,
// so of fewer pixels there are fewer.
#include "compiler/codegen/common/Rules.h"
#include "compiler/codegen/cpu/Lines.h"
#include "compiler/codegen/cpu/Rows.h"

using namespace mlir;
using namespace mtc;

// Largest number of chunks of a period that are unrolled; more chunks are a loop.
static constexpr int64_t maxUnrolled = 4;

static int64_t padded(int64_t period) { return (period + lanes - 1) / lanes * lanes; }

// Number of partial sums for this number of pixels, a power of two.
static int64_t partialSums(int64_t pixels) { return std::min<int64_t>(lanes, llvm::PowerOf2Ceil(pixels)); }

LogicalResult RowEmitter::runPeriods(const RowStatement &statement, SmallVectorImpl<Value> &sums) {
  int64_t period = statement.period, whole = period / lanes * lanes;
  LogicalResult result = success();
  beginLines(statement);
  Emitter::Values ends =
      emit.loop(emit.integer(0), emit.integer(statement.count / period), 1, sums, [&](Value pixel, ValueRange carried) {
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
          chunk(emit.integer(whole), emit.maskBelow(period - whole));
        return next;
      });
  sums.assign(ends.begin(), ends.end());
  endLines(statement);
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
      for (int64_t half = sums / 2; half >= 1; half /= 2)
        for (int64_t line = 0; line < half; ++line)
          values[line] = combine(emit, reduce.getKind(), values[line], values[line + half]);
      emit.storeLanes(values[0], emit.address(to, element, inner), mask);
    };
    if (whole > 0)
      emit.loop(emit.integer(0), emit.integer(whole), lanes, [&](Value inner) { fold(inner, Value()); });
    if (whole < statement.period)
      fold(emit.integer(whole), emit.maskBelow(statement.period - whole));
  }
}
