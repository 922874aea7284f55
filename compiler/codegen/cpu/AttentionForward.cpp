// SPDX-License-Identifier: Apache-2.0
//
// Attention: a tile of the grid is a block of queries of one head. It processes the keys one block at a time, and keeps
// m, l and the result so far (MtAttention.td).
#include "compiler/codegen/cpu/Attention.h"
#include "compiler/codegen/cpu/Kernels.h"
#include "dialects/mt/VectorExpr.h"
#include <limits>

using namespace mlir;
using namespace mtc;

// Value of a hidden score, and initial value of the largest score.
static constexpr float hidden = std::numeric_limits<float>::lowest();

namespace {
class ForwardEmitter : AttentionEmitter {
public:
  ForwardEmitter(Kernel &kernel, mt::AttentionOp attention, mt::AttentionLogSumsOp logSums);
  void run();

private:
  mt::AttentionOp attention;
  mt::AttentionLogSumsOp logSums;
  Value q, k, v, result, sums; // buffers; null if the kernel does not use one
  // Memory of a thread: queries as rows and transposed; keys as rows, their values in panels, scores. For the block of
  // queries: the largest scores, l, and the result so far, one panel of queries after the other, each divided into
  // panels of columns.
  Value lines, transposed, keys, valueLines, values, scores, most, total, factor, output;

  void emitBlock(const Head &head, Value query);
  void addKeys(const Head &head, Value query, Value at, Value key, Value count);
  void emitSoftmax(const Head &head, Value query, Value at, Value key, Value count);
  Emitter::Values largestOf(const Head &head, Value query, Value key, Value first, Value end, bool hides,
                            ValueRange before);
  Emitter::Values addUp(const Head &head, Value query, Value key, Value first, Value end, bool hides,
                        ValueRange largest, ValueRange sums);
  void rescale(Value at);
  void finish(const Head &head, Value query, Value at, Value count);
  Value vectorAt(Value array, Value at, int64_t vector) { return lane(lane(array, at), vector * lanes); }
};
} // namespace

ForwardEmitter::ForwardEmitter(Kernel &kernel, mt::AttentionOp attention, mt::AttentionLogSumsOp logSums)
    : AttentionEmitter(kernel, attention ? attention.getOperation() : logSums.getOperation()), attention(attention),
      logSums(logSums) {
  auto bufferOf = [&](Value value) { return kernel.argumentBuffer(cast<BlockArgument>(value).getArgNumber()); };
  q = bufferOf(attention ? attention.getQuery() : logSums.getQuery());
  k = bufferOf(attention ? attention.getKey() : logSums.getKey());
  for (auto [i, yield] : llvm::enumerate(kernel.yields()))
    (attention && yield == attention.getResult() ? result : sums) = kernel.resultBuffer(static_cast<int64_t>(i));
  Type f32 = emit.realType();
  lines = emit.array(f32, attentionQueries * keyWidth);
  transposed = emit.array(f32, attentionQueries * keyWidth);
  keys = emit.array(f32, attentionKeys * keyWidth);
  scores = emit.array(f32, attentionKeys * panelWidth());
  most = emit.array(f32, attentionQueries);
  total = emit.array(f32, attentionQueries);
  factor = emit.array(f32, panelWidth());
  if (!attention)
    return;
  v = bufferOf(attention.getValue());
  valueLines = Emitter::isHalf(element) ? emit.array(f32, attentionKeys * valueWidth) : Value();
  values = emit.array(f32, attentionKeys * valueWidth);
  output = emit.array(f32, attentionQueries * valueWidth);
}

// One tile per block of queries of each head. The blocks of a head are ordered first, last, second, last but one and so
// on: with a causal mask later blocks have more work, and threads divide the tiles in order.
void ForwardEmitter::run() {
  int64_t number = blocks(), perGroup = form.heads * number;
  emit.loop(kernel.tileBegin, kernel.tileEnd, 1, [&](Value tile) {
    Value sample = emit.div(tile, emit.integer(form.groups * perGroup));
    Value inSample = emit.rem(tile, emit.integer(form.groups * perGroup));
    Value group = emit.div(inSample, emit.integer(perGroup)), inGroup = emit.rem(inSample, emit.integer(perGroup));
    Value head = emit.div(inGroup, emit.integer(number)), turn = emit.rem(inGroup, emit.integer(number));
    Value half = emit.div(turn, emit.integer(2));
    Value block = select(emit.equal(emit.rem(turn, emit.integer(2)), emit.integer(0)), half,
                         emit.sub(emit.integer(number - 1), half));
    Value keyHead = emit.div(head, emit.integer(form.heads / form.keyHeads));
    emitBlock(headOf(sample, group, head, keyHead), emit.mul(block, attentionQueries));
  });
}

void ForwardEmitter::emitBlock(const Head &head, Value query) {
  Value count = emit.min(emit.sub(emit.integer(form.queries), query), emit.integer(attentionQueries));
  copyQueries(lineOf(q, head, false, form.keySize, query), strideOf(false, form.keySize), form.keySize, count,
              form.scale, lines);
  transposeLines(lines, form.keySize, keyWidth, transposed);
  emit.loop(emit.integer(0), emit.integer(attentionQueries), lanes,
            [&](Value at) { emit.storeLanes(splat(hidden), lane(most, at)); });
  zero(total, attentionQueries);
  if (attention)
    zero(output, attentionQueries * valueWidth);
  auto load = [&](Value key, Value all) {
    copyLines(lineOf(k, head, true, form.keySize, key), strideOf(true, form.keySize), form.keySize, all, 1, keys);
    if (!attention)
      return;
    Value from = lineOf(v, head, true, form.valueSize, key);
    int64_t stride = strideOf(true, form.valueSize);
    if (valueLines) {
      copyLines(from, stride, form.valueSize, all, 1, valueLines);
      from = valueLines;
      stride = valueWidth;
    }
    packLines(from, stride, form.valueSize, all, attentionKeys, values);
  };
  walkKeys(query, count, panelWidth(), load,
           [&](Value at, Value key, Value seen) { addKeys(head, emit.add(query, at), at, key, seen); });
  emit.loop(emit.integer(0), count, panelWidth(), [&](Value at) { finish(head, query, at, emit.sub(count, at)); });
}

// Adds `count` keys to the panel of queries at index `at` of its block.
void ForwardEmitter::addKeys(const Head &head, Value query, Value at, Value key, Value count) {
  emitScores(keys, keyWidth, form.keySize, lane(transposed, emit.mul(at, keyWidth)), count, scores);
  emitSoftmax(head, query, at, key, count);
  if (!attention)
    return;
  rescale(at);
  Value sums = lane(output, emit.mul(at, valueWidth));
  forColumns(form.valueSize, [&](Value column, Panel columns) {
    emitProduct(emit, Layout::columns, columns, scores, emit.integer(panelWidth()),
                lane(values, emit.mul(column, attentionKeys)), count, lane(sums, emit.mul(column, panelWidth())),
                emit.integer(panelWidth()));
  });
}

// The largest scores of keys [first, end) and of the keys before. Hidden scores are replaced by `hidden`.
Emitter::Values ForwardEmitter::largestOf(const Head &head, Value query, Value key, Value first, Value end, bool hides,
                                          ValueRange before) {
  return emit.loop(first, end, 1, before, [&](Value i, ValueRange carried) {
    Value line = lane(scores, emit.mul(i, panelWidth()));
    Emitter::Values next;
    for (int64_t vector = 0; vector < panel.vectors; ++vector) {
      Value address = lane(line, vector * lanes), score = load(address);
      if (hides) {
        Value seen = seenLanes(head, emit.add(key, i), emit.add(query, vector * lanes));
        score = select(seen, score, splat(hidden));
        emit.storeLanes(score, address);
      }
      Value larger = arith::CmpFOp::create(emit, arith::CmpFPredicate::OGT, score, carried[vector]);
      next.push_back(select(larger, score, carried[vector]));
    }
    return next;
  });
}

// Replaces the scores of keys [first, end) by e^(score - m), and adds them to the sums.
Emitter::Values ForwardEmitter::addUp(const Head &head, Value query, Value key, Value first, Value end, bool hides,
                                      ValueRange largest, ValueRange sums) {
  return emit.loop(first, end, 1, sums, [&](Value i, ValueRange carried) {
    Value line = lane(scores, emit.mul(i, panelWidth()));
    Emitter::Values next;
    for (int64_t vector = 0; vector < panel.vectors; ++vector) {
      Value address = lane(line, vector * lanes), score = load(address);
      Value p = exp(minus(score, largest[vector]));
      if (hides)
        p = select(isEqual(score, splat(hidden)), splat(0), p);
      next.push_back(plus(carried[vector], p));
      if (Value kept = keptLanes(head, emit.add(key, i), emit.add(query, vector * lanes)))
        p = times(p, kept);
      emit.storeLanes(p, address);
    }
    return next;
  });
}

void ForwardEmitter::emitSoftmax(const Head &head, Value query, Value at, Value key, Value count) {
  Emitter::Values before, largest, sums;
  for (int64_t vector = 0; vector < panel.vectors; ++vector)
    before.push_back(load(vectorAt(most, at, vector)));
  largest = before;
  forSeen(key, count, query, [&](Value first, Value end, bool hides) {
    largest = largestOf(head, query, key, first, end, hides, largest);
  });
  for (int64_t vector = 0; vector < panel.vectors; ++vector) {
    Value scale = exp(minus(before[vector], largest[vector]));
    emit.storeLanes(scale, lane(factor, vector * lanes));
    emit.storeLanes(largest[vector], vectorAt(most, at, vector));
    sums.push_back(times(load(vectorAt(total, at, vector)), scale));
  }
  forSeen(key, count, query, [&](Value first, Value end, bool hides) {
    sums = addUp(head, query, key, first, end, hides, largest, sums);
  });
  for (int64_t vector = 0; vector < panel.vectors; ++vector)
    emit.storeLanes(sums[vector], vectorAt(total, at, vector));
}

// Multiplies the result so far by the factor of each query.
void ForwardEmitter::rescale(Value at) {
  Value sums = lane(output, emit.mul(at, valueWidth));
  forColumns(form.valueSize, [&](Value column, Panel columns) {
    Value base = lane(sums, emit.mul(column, panelWidth()));
    emit.loop(emit.integer(0), emit.integer(panelWidth()), 1, [&](Value row) {
      Value scale = emit.splat(emit.load(emit.realType(), lane(factor, row)));
      Value line = lane(base, emit.mul(row, columns.width()));
      for (int64_t vector = 0; vector < columns.vectors; ++vector) {
        Value address = lane(line, vector * lanes);
        emit.storeLanes(times(load(address), scale), address);
      }
    });
  });
}

void ForwardEmitter::finish(const Head &head, Value query, Value at, Value count) {
  Value one = splat(1), zero = splat(0);
  for (int64_t vector = 0; vector < panel.vectors; ++vector) {
    Value l = load(vectorAt(total, at, vector)), none = isEqual(l, zero);
    Value reciprocal = arith::DivFOp::create(emit, one, l);
    emit.storeLanes(select(none, zero, reciprocal), lane(factor, vector * lanes));
    if (!sums)
      continue;
    Value logarithm = mt::log(mt::VectorExpr(emit, emit.getLoc(), l)).value();
    Value logSum = select(none, zero, plus(load(vectorAt(most, at, vector)), logarithm));
    Value number = emit.add(emit.mul(head.index, form.heads), head.head);
    Value element = emit.add(emit.add(emit.mul(number, form.queries), query), emit.add(at, vector * lanes));
    Value left = emit.max(emit.sub(count, emit.integer(vector * lanes)), emit.integer(0));
    emit.storeLanes(logSum, lane(sums, element), emit.maskBelow(left));
  }
  if (!result)
    return;
  Value rows = emit.min(count, emit.integer(panelWidth())), stored = lane(output, emit.mul(at, valueWidth));
  Value to = lineOf(result, head, false, form.valueSize, emit.add(query, at));
  forColumns(form.valueSize, [&](Value column, Panel columns) {
    Value base = lane(stored, emit.mul(column, panelWidth()));
    emit.loop(emit.integer(0), rows, 1, [&](Value row) {
      Value scale = emit.splat(emit.load(emit.realType(), lane(factor, row)));
      Value line = lane(base, emit.mul(row, columns.width()));
      Value target = channel(channel(to, emit.mul(row, strideOf(false, form.valueSize))), column);
      for (int64_t vector = 0; vector < columns.vectors; ++vector) {
        Value mask = vector + 1 == columns.vectors && columns.last < lanes ? emit.maskBelow(columns.last) : Value();
        storeRounded(times(load(lane(line, vector * lanes)), scale), channel(target, emit.integer(vector * lanes)),
                     mask);
      }
    });
  });
}

Grid mtc::attentionGrid(plan::KernelOp op) {
  mt::Attention form(&op.getBody().front().front());
  return {1, form.groups * form.heads * ceilDiv(form.queries, attentionQueries), 0};
}

LogicalResult mtc::emitAttention(Kernel &kernel) {
  auto [attention, logSums] = attentionOf(kernel.body());
  ForwardEmitter(kernel, attention, logSums).run();
  return success();
}
