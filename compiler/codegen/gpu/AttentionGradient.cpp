// SPDX-License-Identifier: Apache-2.0
//
// Gradients of an attention. For dK and dV, a block owns 64 keys of one head and processes the queries of all heads
// that read it. For dQ, a block owns 64 queries of one head and processes the keys. Both compute the scores again, so
// that no block adds to values that another block writes.
#include "compiler/codegen/gpu/Attention.h"
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/Product.h"

using namespace mlir;
using namespace mtc;

namespace {
class GradientBlock : AttentionBlock {
public:
  GradientBlock(BlockKernel &kernel, mt::AttentionGradientOp any);
  void run();

private:
  Value dy, q, k, v, y, logSums; // buffers
  Value dq, dk, dv;              // buffers of the results; null if the kernel does not compute one
  const Step step;

  bool needsDifferences() const { return dq || dk; }
  int64_t elementBytes() const { return way == Way::halves ? 2 : 4; }
  // Panels of rows: queries or keys, followed by the gradients or values of the same positions.
  LinePanel firstIn(Value from) const { return {from, form.keySize, strideOf(way, form.keySize)}; }
  LinePanel secondIn(Value from, int64_t lines) {
    Value following = bytesAfter(from, lines * strideOf(way, form.keySize) * elementBytes());
    return {following, form.valueSize, strideOf(way, form.valueSize)};
  }
  int64_t bufferBytes() const { return step.lines * (lineBytes(way) + 8); }
  // Numbers of the queries of a buffer: logSumOf, followed by deltaOf.
  Value numbersIn(Value buffer) { return bytesAfter(buffer, step.lines * lineBytes(way)); }

  struct Own {
    OwnLines first, second;
  };
  Own loadOwn(const HeadLines &first, const HeadLines &second, Value position);
  void clearBuffers();
  void emitKeys(Value sample, Value group, Value keyHead, Value key);
  void emitQueries(const Head &head, Value query);
  Emitter::Values addQueries(const ScoreTile &block, const Own &keys, Value buffer, ValueRange carried);
  Emitter::Values addKeys(const ScoreTile &block, const Own &queries, Value buffer, ValueRange numbers,
                          ValueRange carried);
  Emitter::Values elementsAt(Value address, int64_t count);
  Value deltaOf(const HeadLines &gradients, const HeadLines &outputs, Value position);
  Value logSumOf(const Head &head, Value position); // negative, in the unit of `exp`
  void loadNumbers(const Head &head, Value query, Value buffer);
  Emitter::Values probabilitiesOf(const ScoreTile &block, ValueRange scores, llvm::function_ref<Value(int64_t)> logSum);
  Emitter::Values differencesOf(ValueRange p, ValueRange products, ValueRange kept,
                                llvm::function_ref<Value(int64_t)> delta);
};
} // namespace

GradientBlock::GradientBlock(BlockKernel &kernel, mt::AttentionGradientOp any)
    : AttentionBlock(kernel, any), step(stepOf(way, /*isGradient=*/true)) {
  auto bufferOf = [&](Value value) { return kernel.argument(cast<BlockArgument>(value).getArgNumber()); };
  dy = bufferOf(any.getGradient());
  q = bufferOf(any.getQuery());
  k = bufferOf(any.getKey());
  v = bufferOf(any.getValue());
  y = bufferOf(any.getOutput());
  logSums = bufferOf(any.getLogSums());
  for (auto [i, yield] : llvm::enumerate(kernel.yields())) {
    mt::AttentionOperand of = yield.getDefiningOp<mt::AttentionGradientOp>().getOf();
    Value &result = of == mt::AttentionOperand::query ? dq : of == mt::AttentionOperand::key ? dk : dv;
    result = kernel.result(static_cast<int64_t>(i));
  }
  memory = kernel.allocateShared(emit.getI8Type(), sharedBytes(/*isGradient=*/true));
  probabilities = bytesAfter(memory, step.buffers * bufferBytes());
}

// Number of tiles for an index of the axes before the positions: blocks of keys of all heads, then blocks of queries.
static std::pair<int64_t, int64_t> blocksOf(plan::KernelOp op, const mt::Attention &form) {
  bool ofQueries = false, ofKeys = false;
  for (auto gradient : op.getBody().front().getOps<mt::AttentionGradientOp>())
    (gradient.getOf() == mt::AttentionOperand::query ? ofQueries : ofKeys) = true;
  return {ofKeys ? form.keyHeads * ceilDiv(form.keys, attentionLines) : 0,
          ofQueries ? form.heads * ceilDiv(form.queries, attentionLines) : 0};
}

void GradientBlock::run() {
  auto [ofKeys, ofQueries] = blocksOf(kernel.op, form);
  int64_t keyBlocks = ceilDiv(form.keys, attentionLines), queryBlocks = ceilDiv(form.queries, attentionLines);
  Value all = emit.integer(ofKeys + ofQueries), index = emit.div(kernel.tile, all), tile = emit.rem(kernel.tile, all);
  Value sample = emit.div(index, emit.integer(form.groups)), group = emit.rem(index, emit.integer(form.groups));
  clearBuffers();
  auto keys = [&] {
    emitKeys(sample, group, emit.div(tile, emit.integer(keyBlocks)),
             emit.mul(emit.rem(tile, emit.integer(keyBlocks)), attentionLines));
  };
  auto queries = [&, ofKeys = ofKeys] {
    Value number = emit.sub(tile, emit.integer(ofKeys)), block = emit.rem(number, emit.integer(queryBlocks));
    if (form.causal)
      block = emit.sub(emit.integer(queryBlocks - 1), block);
    Value head = emit.div(number, emit.integer(queryBlocks));
    emitQueries(headOf(sample, group, head, emit.div(head, emit.integer(form.heads / form.keyHeads))),
                emit.mul(block, attentionLines));
  };
  if (!ofQueries)
    return keys();
  if (!ofKeys)
    return queries();
  emit.when(emit.less(tile, emit.integer(ofKeys)), keys, queries);
}

void GradientBlock::clearBuffers() {
  for (int64_t buffer = 0; buffer < step.buffers; ++buffer) {
    Value at = bytesAfter(memory, buffer * bufferBytes());
    clearPads(firstIn(at), step.lines);
    clearPads(secondIn(at, step.lines), step.lines);
  }
}

GradientBlock::Own GradientBlock::loadOwn(const HeadLines &first, const HeadLines &second, Value position) {
  Value panels = bytesAfter(memory, step.buffers * bufferBytes());
  Own own{{first, position, firstIn(panels), {}}, {second, position, secondIn(panels, attentionLines), {}}};
  if (way != Way::halves)
    return own;
  for (const OwnLines &lines : {own.first, own.second}) {
    clearPads(lines.panel, attentionLines);
    copyLines(lines.lines, position, attentionLines, lines.panel);
  }
  endCopies();
  return own;
}

// ---- numbers of queries

Value GradientBlock::logSumOf(const Head &head, Value position) {
  Value line = emit.add(emit.mul(head.index, form.heads), head.head);
  Type f32 = emit.getF32Type();
  Value logSum = emit.load(f32, emit.address(logSums, f32, emit.add(emit.mul(line, form.queries), position)));
  return times(logSum, number(-unit));
}

// A pair of bf16 in one word is converted to two f32 by a mask and a shift.
Emitter::Values GradientBlock::elementsAt(Value address, int64_t count) {
  Emitter::Values elements;
  if (!element.isBF16() || count == 1) {
    Value chunk = loadChunk(emit, element, address, count);
    for (int64_t i = 0; i < count; ++i)
      elements.push_back(count == 1 ? chunk : emit.extract(chunk, i));
    return elements;
  }
  auto constant = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(emit, emit.getI32IntegerAttr(value));
  };
  Value words = LLVM::LoadOp::create(emit, VectorType::get({count / 2}, emit.getI32Type()), address, 2 * count);
  for (int64_t i = 0; i < count / 2; ++i) {
    Value word = emit.extract(words, i);
    for (Value bits : {arith::ShLIOp::create(emit, word, constant(16)).getResult(),
                       arith::AndIOp::create(emit, word, constant(-0x10000)).getResult()})
      elements.push_back(arith::BitcastOp::create(emit, emit.getF32Type(), bits));
  }
  return elements;
}

// The sum of dY * Y over a row. Four lanes share it: each adds every fourth chunk in order, then the four sums are
// reduced.
Value GradientBlock::deltaOf(const HeadLines &gradients, const HeadLines &outputs, Value position) {
  int64_t size = form.valueSize, chunk = chunkOfSize(size, maxAccessBytes / emit.bytes(element));
  Value a = at(gradients.base, emit.mul(position, gradients.stride)),
        b = at(outputs.base, emit.mul(position, outputs.stride));
  Value first = emit.mul(pair, chunk), sum = number(0);
  for (int64_t from = 0; from < size; from += 4 * chunk) {
    Value column = emit.add(first, from), there;
    if (from + 4 * chunk > size) {
      there = emit.less(column, emit.integer(size));
      column = orZero(emit, there, column);
    }
    Emitter::Values x = elementsAt(at(a, column), chunk), z = elementsAt(at(b, column), chunk);
    for (int64_t j = 0; j < chunk; ++j)
      sum = emit.fma(there ? orZero(emit, there, x[j]) : x[j], z[j], sum);
  }
  return overFour(sum, [&](Value a, Value b) { return plus(a, b); });
}

// Loads the numbers of the queries of a buffer, with four lanes per query.
void GradientBlock::loadNumbers(const Head &head, Value query, Value buffer) {
  static_assert(attentionThreads == 4 * 32, "a query of a buffer has four lanes");
  Type f32 = emit.getF32Type();
  Value line = emit.div(kernel.thread, emit.integer(4)), position = emit.add(query, line);
  Value there = emit.less(position, emit.integer(form.queries));
  position = emit.min(position, emit.integer(form.queries - 1));
  Value logSum = orZero(emit, there, logSumOf(head, position)), delta;
  if (dk)
    delta = orZero(emit, there,
                   deltaOf(linesOf(dy, head, /*ofKeys=*/false, form.valueSize),
                           linesOf(y, head, /*ofKeys=*/false, form.valueSize), position));
  Value to = emit.address(numbersIn(buffer), f32, line);
  emit.when(both(emit, emit.equal(pair, emit.integer(0)), emit.less(line, emit.integer(step.lines))), [&] {
    emit.store(logSum, to);
    if (dk)
      emit.store(delta, emit.address(to, f32, step.lines));
  });
}

// ---- probabilities and differences

Emitter::Values GradientBlock::probabilitiesOf(const ScoreTile &block, ValueRange scores,
                                               llvm::function_ref<Value(int64_t)> logSum) {
  Emitter::Values p;
  for (auto [i, score] : llvm::enumerate(scores))
    p.push_back(exp(emit.fma(score, number(unit * form.scale), logSum(i))));
  return hide(block, p, number(0));
}

// dS = P (dY V^T - D).
Emitter::Values GradientBlock::differencesOf(ValueRange p, ValueRange products, ValueRange kept,
                                             llvm::function_ref<Value(int64_t)> delta) {
  Emitter::Values differences;
  for (auto [i, product] : llvm::enumerate(products)) {
    Value taken = kept.empty() ? product : times(product, kept[i]);
    differences.push_back(times(p[i], minus(taken, delta(i))));
  }
  return differences;
}

// ---- dK and dV

void GradientBlock::emitKeys(Value sample, Value group, Value keyHead, Value key) {
  int64_t shared = form.heads / form.keyHeads;
  Head any = headOf(sample, group, emit.mul(keyHead, shared), keyHead);
  Own keys =
      loadOwn(linesOf(k, any, /*ofKeys=*/true, form.keySize), linesOf(v, any, /*ofKeys=*/true, form.valueSize), key);
  int64_t ofKeys = dk ? tileOfSize(form.keySize).count() : 0, ofValues = dv ? tileOfSize(form.valueSize).count() : 0;
  Emitter::Values sums = zeros(ofKeys + ofValues);
  auto addHead = [&](Value number, ValueRange carried) {
    Head head = headOf(sample, group, emit.add(emit.mul(keyHead, shared), number), keyHead);
    HeadLines queries = linesOf(q, head, /*ofKeys=*/false, form.keySize),
              gradients = linesOf(dy, head, /*ofKeys=*/false, form.valueSize);
    return walk(
        memory, bufferBytes(), step, othersOf(key, /*ownIsQuery=*/false, step.lines), carried,
        [&](Value query, Value buffer) {
          copyLines(queries, query, step.lines, firstIn(buffer));
          copyLines(gradients, query, step.lines, secondIn(buffer, step.lines));
          loadNumbers(head, query, buffer);
        },
        [&](Value query, Value buffer, ValueRange now) {
          return addQueries({head, key, query, /*ownIsQuery=*/false, step.lines}, keys, buffer, now);
        });
  };
  if (shared == 1)
    sums = addHead(emit.integer(0), sums);
  else
    sums = emit.loop(emit.integer(0), emit.integer(shared), 1, sums, addHead);
  Value scale = number(form.scale), one = number(1);
  if (dk)
    storeSums(ValueRange(sums).take_front(ofKeys), form.keySize, {scale, scale},
              linesOf(dk, any, /*ofKeys=*/true, form.keySize), key);
  if (dv)
    storeSums(ValueRange(sums).drop_front(ofKeys), form.valueSize, {one, one},
              linesOf(dv, any, /*ofKeys=*/true, form.valueSize), key);
}

Emitter::Values GradientBlock::addQueries(const ScoreTile &block, const Own &keys, Value buffer, ValueRange carried) {
  Type f32 = emit.getF32Type();
  WarpTile tile = tileOfLines(step.lines);
  int64_t ofKeys = dk ? tileOfSize(form.keySize).count() : 0;
  Value numbers = emit.address(numbersIn(buffer), f32, emit.mul(pair, tile.wide));
  auto numberOf = [&](int64_t i, int64_t following) {
    return emit.load(f32, emit.address(numbers, f32, tile.column(i) + following));
  };
  LinePanel queries = firstIn(buffer), gradients = secondIn(buffer, step.lines);
  Emitter::Values p =
      probabilitiesOf(block, scores(keys.first, queries, step.lines), [&](int64_t i) { return numberOf(i, 0); });
  Emitter::Values factors = kept(block), next(carried.take_front(ofKeys)), ofValues(carried.drop_front(ofKeys));
  if (dv) {
    Emitter::Values dropped = p;
    for (auto [one, factor] : llvm::zip(dropped, factors))
      one = times(one, factor);
    ofValues = addProduct(dropped, step.lines, gradients, ofValues);
  }
  if (dk) {
    Emitter::Values products = scores(keys.second, gradients, step.lines);
    Emitter::Values differences =
        differencesOf(p, products, factors, [&](int64_t i) { return numberOf(i, step.lines); });
    next = addProduct(differences, step.lines, queries, next);
  }
  next.append(ofValues);
  return next;
}

// ---- dQ

void GradientBlock::emitQueries(const Head &head, Value query) {
  HeadLines gradients = linesOf(dy, head, /*ofKeys=*/false, form.valueSize),
            outputs = linesOf(y, head, /*ofKeys=*/false, form.valueSize);
  Own queries = loadOwn(linesOf(q, head, /*ofKeys=*/false, form.keySize), gradients, query);
  Emitter::Values numbers; // log sums of the thread's two queries, then their deltas
  for (bool isDelta : {false, true})
    for (int64_t half : {0, 1}) {
      Value position = emit.add(emit.add(query, warpLine), emit.add(group, 8 * half));
      position = emit.min(position, emit.integer(form.queries - 1));
      numbers.push_back(isDelta ? deltaOf(gradients, outputs, position) : logSumOf(head, position));
    }
  HeadLines keys = linesOf(k, head, /*ofKeys=*/true, form.keySize),
            values = linesOf(v, head, /*ofKeys=*/true, form.valueSize);
  Emitter::Values sums = walk(
      memory, bufferBytes(), step, othersOf(query, /*ownIsQuery=*/true, step.lines),
      zeros(tileOfSize(form.keySize).count()),
      [&](Value key, Value buffer) {
        copyLines(keys, key, step.lines, firstIn(buffer));
        copyLines(values, key, step.lines, secondIn(buffer, step.lines));
      },
      [&](Value key, Value buffer, ValueRange now) {
        return addKeys({head, query, key, /*ownIsQuery=*/true, step.lines}, queries, buffer, numbers, now);
      });
  Value scale = number(form.scale);
  storeSums(sums, form.keySize, {scale, scale}, linesOf(dq, head, /*ofKeys=*/false, form.keySize), query);
}

Emitter::Values GradientBlock::addKeys(const ScoreTile &block, const Own &queries, Value buffer, ValueRange numbers,
                                       ValueRange carried) {
  WarpTile tile = tileOfLines(step.lines);
  LinePanel keys = firstIn(buffer), values = secondIn(buffer, step.lines);
  Emitter::Values p =
      probabilitiesOf(block, scores(queries.first, keys, step.lines), [&](int64_t i) { return numbers[tile.half(i)]; });
  Emitter::Values products = scores(queries.second, values, step.lines);
  Emitter::Values differences =
      differencesOf(p, products, kept(block), [&](int64_t i) { return numbers[2 + tile.half(i)]; });
  return addProduct(differences, step.lines, keys, carried);
}

GpuGrid mtc::attentionGradientGpuGrid(plan::KernelOp op, int64_t) {
  mt::Attention form(&op.getBody().front().front());
  auto [ofKeys, ofQueries] = blocksOf(op, form);
  return {attentionThreads, 1, form.groups * (ofKeys + ofQueries), 0, 0};
}

LogicalResult mtc::emitBlockAttentionGradient(BlockKernel &kernel) {
  GradientBlock(kernel, cast<mt::AttentionGradientOp>(kernel.body().front())).run();
  return success();
}
