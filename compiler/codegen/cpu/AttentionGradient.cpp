// SPDX-License-Identifier: Apache-2.0
//
// Gradients of an attention: a tile of the grid is a head of the keys, with all heads of the queries that read it. The
// sums of dK and dV are in memory. A block of queries processes the keys one block at a time.
#include "compiler/codegen/cpu/Attention.h"
#include "compiler/codegen/cpu/Kernels.h"

using namespace mlir;
using namespace mtc;

namespace {
class GradientEmitter : AttentionEmitter {
public:
  GradientEmitter(Kernel &kernel, mt::AttentionGradientOp any);
  void run();

private:
  Value dy, q, k, v, y, logSums; // buffers
  Value dq, dk, dv;              // buffers of the results; null if the kernel does not compute one
  // A block of rows in three forms: unchanged, transposed (rows are channels), and as panels of columns.
  struct Lines {
    Value lines, transposed, panels;
  };
  Lines queries, gradients, outputs;
  Value keys, values, keyPanels; // rows of a block of keys, and the same rows in panels
  Value logs, deltas;            // of a block of queries
  // For a block of keys: scores and dY V^T of one panel of queries; P and dS of attentionSkipped queries.
  Value scores, products, probabilities, differences;
  Value querySums, keySums, valueSums;

  bool needsDifferences() const { return dq || dk; }
  int64_t keyRows() const { return ceilDiv(form.keys, attentionKeys) * attentionKeys; }
  Lines linesOf(int64_t width) {
    auto array = [&] { return emit.array(emit.realType(), attentionQueries * width); };
    return {array(), array(), array()};
  }
  void prepare(Lines &block, Value from, int64_t size, int64_t width, Value count, float scale);
  void emitDeltas();
  void emitBlock(const Head &head, Value query);
  void addKeys(const Head &head, Value query, Value at, Value count, Value key, Value keys);
  void emitDifferences(const Head &head, Value query, Value at, Value inner, Value key, Value first, Value end,
                       bool hides);
  void addProducts(Value sums, const Lines &block, int64_t size, Value left, Value at, Value depth, Value key,
                   Value keys);
  void store(Value sums, int64_t height, Value rows, int64_t size, float scale, Value to, int64_t stride);
};
} // namespace

GradientEmitter::GradientEmitter(Kernel &kernel, mt::AttentionGradientOp any) : AttentionEmitter(kernel, any) {
  auto bufferOf = [&](Value value) { return kernel.argumentBuffer(cast<BlockArgument>(value).getArgNumber()); };
  dy = bufferOf(any.getGradient());
  q = bufferOf(any.getQuery());
  k = bufferOf(any.getKey());
  v = bufferOf(any.getValue());
  y = bufferOf(any.getOutput());
  logSums = bufferOf(any.getLogSums());
  for (auto [i, yield] : llvm::enumerate(kernel.yields())) {
    mt::AttentionOperand of = yield.getDefiningOp<mt::AttentionGradientOp>().getOf();
    Value &result = of == mt::AttentionOperand::query ? dq : of == mt::AttentionOperand::key ? dk : dv;
    result = kernel.resultBuffer(static_cast<int64_t>(i));
  }
  Type f32 = emit.realType();
  queries = linesOf(keyWidth);
  gradients = linesOf(valueWidth);
  outputs = linesOf(valueWidth);
  keys = emit.array(f32, attentionKeys * keyWidth);
  values = emit.array(f32, attentionKeys * valueWidth);
  keyPanels = emit.array(f32, attentionKeys * keyWidth);
  logs = emit.array(f32, attentionQueries);
  deltas = emit.array(f32, attentionQueries);
  scores = emit.array(f32, attentionKeys * panelWidth());
  products = emit.array(f32, attentionKeys * panelWidth());
  probabilities = emit.array(f32, attentionKeys * attentionSkipped);
  differences = emit.array(f32, attentionKeys * attentionSkipped);
  querySums = emit.array(f32, attentionQueries * keyWidth);
  keySums = dk ? emit.array(f32, keyRows() * keyWidth) : Value();
  valueSums = dv ? emit.array(f32, keyRows() * valueWidth) : Value();
}

void GradientEmitter::run() {
  emit.loop(kernel.tileBegin, kernel.tileEnd, 1, [&](Value tile) {
    int64_t perSample = form.groups * form.keyHeads, shared = form.heads / form.keyHeads;
    Value sample = emit.div(tile, emit.integer(perSample)), inSample = emit.rem(tile, emit.integer(perSample));
    Value group = emit.div(inSample, emit.integer(form.keyHeads));
    Value keyHead = emit.rem(inSample, emit.integer(form.keyHeads));
    if (dk)
      zero(keySums, keyRows() * keyWidth);
    if (dv)
      zero(valueSums, keyRows() * valueWidth);
    emit.loop(emit.integer(0), emit.integer(shared), 1, [&](Value number) {
      Head head = headOf(sample, group, emit.add(emit.mul(keyHead, shared), number), keyHead);
      emit.loop(emit.integer(0), emit.integer(form.queries), attentionQueries,
                [&](Value query) { emitBlock(head, query); });
    });
    Head head = headOf(sample, group, keyHead, keyHead);
    Value first = emit.integer(0), all = emit.integer(form.keys);
    if (dk)
      store(keySums, keyRows(), all, form.keySize, 1, lineOf(dk, head, true, form.keySize, first),
            strideOf(true, form.keySize));
    if (dv)
      store(valueSums, keyRows(), all, form.valueSize, 1, lineOf(dv, head, true, form.valueSize, first),
            strideOf(true, form.valueSize));
  });
}

void GradientEmitter::prepare(Lines &block, Value from, int64_t size, int64_t width, Value count, float scale) {
  copyQueries(from, strideOf(false, size), size, count, scale, block.lines);
  transposeLines(block.lines, size, width, block.transposed);
  packLines(block.lines, width, size, emit.integer(attentionQueries), attentionQueries, block.panels);
}

// The sum of dY * Y over each row: one FMA chain over the channels.
void GradientEmitter::emitDeltas() {
  emit.loop(emit.integer(0), emit.integer(attentionQueries), panelWidth(), [&](Value at) {
    Value left = lane(gradients.transposed, emit.mul(at, valueWidth)),
          right = lane(outputs.transposed, emit.mul(at, valueWidth));
    Emitter::Values sums(panel.vectors, splat(0));
    sums = emit.loop(emit.integer(0), emit.integer(form.valueSize), 1, sums, [&](Value channel, ValueRange carried) {
      Value row = emit.mul(channel, panelWidth());
      Emitter::Values next;
      for (int64_t vector = 0; vector < panel.vectors; ++vector)
        next.push_back(emit.fma(load(lane(lane(left, row), vector * lanes)),
                                load(lane(lane(right, row), vector * lanes)), carried[vector]));
      return next;
    });
    for (int64_t vector = 0; vector < panel.vectors; ++vector)
      emit.storeLanes(sums[vector], lane(lane(deltas, at), vector * lanes));
  });
}

void GradientEmitter::emitBlock(const Head &head, Value query) {
  Value count = emit.min(emit.sub(emit.integer(form.queries), query), emit.integer(attentionQueries));
  prepare(queries, lineOf(q, head, false, form.keySize, query), form.keySize, keyWidth, count, form.scale);
  prepare(gradients, lineOf(dy, head, false, form.valueSize, query), form.valueSize, valueWidth, count, 1);
  if (needsDifferences()) {
    prepare(outputs, lineOf(y, head, false, form.valueSize, query), form.valueSize, valueWidth, count, 1);
    emitDeltas();
  }
  Value number = emit.add(emit.mul(head.index, form.heads), head.head);
  Value logsAt = lane(logSums, emit.add(emit.mul(number, form.queries), query));
  emit.loop(emit.integer(0), emit.integer(attentionQueries), lanes, [&](Value at) {
    Value mask = emit.maskBelow(emit.max(emit.sub(count, at), emit.integer(0)));
    emit.storeLanes(emit.loadLanes(emit.realType(), lane(logsAt, at), mask), lane(logs, at));
  });
  if (dq)
    zero(querySums, attentionQueries * keyWidth);
  auto load = [&](Value key, Value all) {
    copyLines(lineOf(k, head, true, form.keySize, key), strideOf(true, form.keySize), form.keySize, all, 1, keys);
    if (needsDifferences())
      copyLines(lineOf(v, head, true, form.valueSize, key), strideOf(true, form.valueSize), form.valueSize, all, 1,
                values);
    if (dq)
      packLines(keys, keyWidth, form.keySize, all, attentionKeys, keyPanels);
  };
  walkKeys(query, count, attentionSkipped, load,
           [&](Value at, Value key, Value seen) { addKeys(head, query, at, count, key, seen); });
  if (dq)
    store(querySums, attentionQueries, count, form.keySize, form.scale, lineOf(dq, head, false, form.keySize, query),
          strideOf(false, form.keySize));
}

// Adds the products of attentionSkipped queries, from index `at` of the block on, and `seen` keys.
void GradientEmitter::addKeys(const Head &head, Value query, Value at, Value count, Value key, Value seen) {
  emit.loop(emit.integer(0), emit.integer(attentionSkipped), panelWidth(), [&](Value inner) {
    Value here = emit.add(at, inner), first = emit.add(query, here);
    emitScores(keys, keyWidth, form.keySize, lane(queries.transposed, emit.mul(here, keyWidth)), seen, scores);
    if (needsDifferences())
      emitScores(values, valueWidth, form.valueSize, lane(gradients.transposed, emit.mul(here, valueWidth)), seen,
                 products);
    forSeen(key, seen, first, [&](Value firstKey, Value endKey, bool hides) {
      emitDifferences(head, first, here, inner, key, firstKey, endKey, hides);
    });
  });
  Value depth = emit.min(emit.integer(attentionSkipped), emit.sub(count, at));
  if (dv)
    addProducts(valueSums, gradients, form.valueSize, probabilities, at, depth, key, seen);
  if (dk)
    addProducts(keySums, queries, form.keySize, differences, at, depth, key, seen);
  if (!dq)
    return;
  forColumns(form.keySize, [&](Value column, Panel columns) {
    Value sums = lane(lane(querySums, emit.mul(column, attentionQueries)), emit.mul(at, columns.width()));
    emitProduct(emit, Layout::columns, columns, differences, emit.integer(attentionSkipped),
                lane(keyPanels, emit.mul(column, attentionKeys)), seen, sums, emit.integer(attentionSkipped));
  });
}

// P and dS of keys [first, end) and one panel of queries, at index `inner` of the rows of both.
void GradientEmitter::emitDifferences(const Head &head, Value query, Value at, Value inner, Value key, Value first,
                                      Value end, bool hides) {
  SmallVector<Value> logOf, deltaOf;
  for (int64_t vector = 0; vector < panel.vectors; ++vector) {
    logOf.push_back(load(lane(lane(logs, at), vector * lanes)));
    if (needsDifferences())
      deltaOf.push_back(load(lane(lane(deltas, at), vector * lanes)));
  }
  emit.loop(first, end, 1, [&](Value i) {
    Value row = emit.mul(i, panelWidth()), to = emit.add(emit.mul(i, attentionSkipped), inner);
    for (int64_t vector = 0; vector < panel.vectors; ++vector) {
      Value p = exp(minus(load(lane(lane(scores, row), vector * lanes)), logOf[vector]));
      if (hides)
        p = select(seenLanes(head, emit.add(key, i), emit.add(query, vector * lanes)), p, splat(0));
      Value kept = keptLanes(head, emit.add(key, i), emit.add(query, vector * lanes));
      emit.storeLanes(kept ? times(p, kept) : p, lane(lane(probabilities, to), vector * lanes));
      if (!needsDifferences())
        continue;
      Value difference = load(lane(lane(products, row), vector * lanes));
      if (kept)
        difference = times(difference, kept);
      emit.storeLanes(times(p, minus(difference, deltaOf[vector])), lane(lane(differences, to), vector * lanes));
    }
  });
}

// sums[key ...] += left (keys x queries) . rows of the block.
void GradientEmitter::addProducts(Value sums, const Lines &block, int64_t size, Value left, Value at, Value depth,
                                  Value key, Value keys) {
  forColumns(size, [&](Value column, Panel columns) {
    Value right = lane(lane(block.panels, emit.mul(column, attentionQueries)), emit.mul(at, columns.width()));
    Value to = lane(lane(sums, emit.mul(column, keyRows())), emit.mul(key, columns.width()));
    emitProduct(emit, Layout::rows, columns, left, emit.integer(attentionSkipped), right, depth, to, keys);
  });
}

// Stores panels of sums with `height` rows, times `scale`, as rows of the result.
void GradientEmitter::store(Value sums, int64_t height, Value rows, int64_t size, float scale, Value to,
                            int64_t stride) {
  forColumns(size, [&](Value column, Panel columns) {
    Value base = lane(sums, emit.mul(column, height));
    emit.loop(emit.integer(0), rows, 1, [&](Value row) {
      Value line = lane(base, emit.mul(row, columns.width())),
            target = channel(channel(to, emit.mul(row, stride)), column);
      for (int64_t vector = 0; vector < columns.vectors; ++vector) {
        Value mask = vector + 1 == columns.vectors && columns.last < lanes ? emit.maskBelow(columns.last) : Value();
        Value number = load(lane(line, vector * lanes));
        storeRounded(scale == 1 ? number : times(number, splat(scale)), channel(target, emit.integer(vector * lanes)),
                     mask);
      }
    });
  });
}

Grid mtc::attentionGradientGrid(plan::KernelOp op) {
  mt::Attention form(&op.getBody().front().front());
  return {1, form.groups * form.keyHeads, 0};
}

LogicalResult mtc::emitAttentionGradient(Kernel &kernel) {
  GradientEmitter(kernel, cast<mt::AttentionGradientOp>(kernel.body().front())).run();
  return success();
}
