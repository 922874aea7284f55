// SPDX-License-Identifier: Apache-2.0
//
// Attention: a block owns 64 queries of one head. It processes the keys step by step, and keeps m, l and the result so
// far (MtAttention.td) in registers.
#include "compiler/codegen/gpu/Attention.h"
#include "compiler/codegen/gpu/Kernels.h"
#include "dialects/mt/VectorExpr.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mtc;

// Value of a hidden score, and initial value of the largest score.
static constexpr float hidden = std::numeric_limits<float>::lowest();

namespace {
class ForwardBlock : AttentionBlock {
public:
  ForwardBlock(BlockKernel &kernel, mt::AttentionOp attention, mt::AttentionLogSumsOp logSums);
  void run();

private:
  mt::AttentionOp attention;
  Value q, k, v; // buffers; null if the kernel does not use one
  const Step step;
  const float steepness; // absolute value of the scale; products get the sign of the scale before

  int64_t sums() const { return attention ? tileOfSize(form.valueSize).count() : 0; }
  void emitBlock(const Head &head, Value query);
  OwnLines loadQueries(const Head &head, Value query);
  Emitter::Values visit(const ScoreTile &block, const OwnLines &queries, Value buffer, ValueRange carried);
  Emitter::Values probabilitiesOf(ValueRange scores, ValueRange largest);
  void finish(const Head &head, Value query, ValueRange carried);
  LinePanel keysIn(Value buffer) const { return {buffer, form.keySize, strideOf(way, form.keySize)}; }
  LinePanel valuesIn(Value buffer) {
    Value following =
        emit.address(buffer, emit.getI8Type(), step.lines * strideOf(way, form.keySize) * (way == Way::halves ? 2 : 4));
    return {following, form.valueSize, strideOf(way, form.valueSize)};
  }
  int64_t bufferBytes() const { return step.lines * lineBytes(way); }
};
} // namespace

ForwardBlock::ForwardBlock(BlockKernel &kernel, mt::AttentionOp attention, mt::AttentionLogSumsOp given)
    : AttentionBlock(kernel, attention ? attention.getOperation() : given.getOperation()), attention(attention),
      step(stepOf(way, /*isGradient=*/false)), steepness(form.scale == 0 ? 1 : std::fabs(form.scale)) {
  auto bufferOf = [&](Value value) { return kernel.argument(cast<BlockArgument>(value).getArgNumber()); };
  q = bufferOf(attention ? attention.getQuery() : given.getQuery());
  k = bufferOf(attention ? attention.getKey() : given.getKey());
  if (attention)
    v = bufferOf(attention.getValue());
  auto isPlain = [](int64_t size) { return size <= 64 && size % 8 == 0; };
  if (way == Way::halves && isPlain(form.keySize) && isPlain(form.valueSize) && !form.mask)
    kernel.residentBlocks = 4; // the kernel needs 128 registers or slightly more
  memory = kernel.allocateShared(emit.getI8Type(), sharedBytes(/*isGradient=*/false));
  probabilities = bytesAfter(memory, step.buffers * bufferBytes());
}

// With a causal mask the last queries have most work, so they come first.
void ForwardBlock::run() {
  int64_t number = ceilDiv(form.queries, attentionLines), perGroup = form.heads * number;
  Value sample = emit.div(kernel.tile, emit.integer(form.groups * perGroup));
  Value inSample = emit.rem(kernel.tile, emit.integer(form.groups * perGroup));
  Value group = emit.div(inSample, emit.integer(perGroup)), inGroup = emit.rem(inSample, emit.integer(perGroup));
  Value head = emit.div(inGroup, emit.integer(number)), block = emit.rem(inGroup, emit.integer(number));
  if (form.causal)
    block = emit.sub(emit.integer(number - 1), block);
  Value keyHead = emit.div(head, emit.integer(form.heads / form.keyHeads));
  emitBlock(headOf(sample, group, head, keyHead), emit.mul(block, attentionLines));
}

// Loads the queries; for tensor cores they stay in registers.
OwnLines ForwardBlock::loadQueries(const Head &head, Value query) {
  OwnLines own{linesOf(q, head, /*ofKeys=*/false, form.keySize), query, keysIn(memory), {}};
  if (way == Way::fma)
    return own;
  if (way == Way::halves) {
    clearPads(own.panel, attentionLines);
    copyLines(own.lines, query, attentionLines, own.panel);
    endCopies();
  }
  loadFragments(own);
  return own;
}

void ForwardBlock::emitBlock(const Head &head, Value query) {
  OwnLines queries = loadQueries(head, query);
  kernel.barrier();
  for (int64_t buffer = 0; buffer < step.buffers; ++buffer) {
    Value at = bytesAfter(memory, buffer * bufferBytes());
    clearPads(keysIn(at), step.lines);
    clearPads(valuesIn(at), step.lines);
  }
  HeadLines keys = linesOf(k, head, /*ofKeys=*/true, form.keySize);
  HeadLines values = attention ? linesOf(v, head, /*ofKeys=*/true, form.valueSize) : HeadLines();
  // For the thread's two queries: the largest product with a key (m, without the scale) and l, over the thread's own
  // columns; then the result.
  Emitter::Values carried{number(hidden), number(hidden), number(0), number(0)};
  carried.append(zeros(sums()));
  carried = walk(
      memory, bufferBytes(), step, othersOf(query, /*ownIsQuery=*/true, step.lines), carried,
      [&](Value key, Value buffer) {
        copyLines(keys, key, step.lines, keysIn(buffer));
        if (attention)
          copyLines(values, key, step.lines, valuesIn(buffer));
      },
      [&](Value key, Value buffer, ValueRange now) {
        return visit({head, query, key, /*ownIsQuery=*/true, step.lines}, queries, buffer, now);
      });
  finish(head, query, carried);
}

// e^(score - m), or 0 if the score is hidden. `scores` are products without the scale.
Emitter::Values ForwardBlock::probabilitiesOf(ValueRange scores, ValueRange largest) {
  WarpTile tile = tileOfLines(step.lines);
  bool some = hides() || form.keys % step.lines; // some scores may be hidden
  Value scale = number(unit * steepness), from[2];
  for (int64_t half : {0, 1}) {
    // 2^(hidden - 0) is 0
    Value none = isEqual(largest[half], number(hidden));
    Value most = fast && some ? select(none, number(0), largest[half]) : largest[half];
    from[half] = times(most, number(-unit * steepness));
  }
  Emitter::Values p;
  for (auto [i, score] : llvm::enumerate(scores)) {
    p.push_back(exp(emit.fma(score, scale, from[tile.half(i)])));
    if (!fast && some)
      p.back() = select(isEqual(score, number(hidden)), number(0), p.back());
  }
  return p;
}

Emitter::Values ForwardBlock::visit(const ScoreTile &block, const OwnLines &queries, Value buffer, ValueRange carried) {
  WarpTile tile = tileOfLines(step.lines);
  Emitter::Values s = scores(queries, keysIn(buffer), step.lines), next;
  for (Value &product : s)
    if (form.scale <= 0)
      product = times(product, number(form.scale < 0 ? -1 : 0));
  s = hide(block, s, number(hidden));
  Value largest[] = {carried[0], carried[1]}, factor[2], total[2];
  for (int64_t half : {0, 1}) {
    Value most;
    for (int64_t i = 0; i < tile.count(); ++i)
      if (tile.half(i) == half)
        most = most ? larger(most, s[i]) : s[i];
    largest[half] = larger(largest[half], overFour(most, [&](Value a, Value b) { return larger(a, b); }));
    factor[half] = exp(times(minus(carried[half], largest[half]), number(unit * steepness)));
    total[half] = times(carried[2 + half], factor[half]);
  }
  Emitter::Values p = probabilitiesOf(s, largest);
  for (auto [i, one] : llvm::enumerate(p))
    total[tile.half(i)] = plus(total[tile.half(i)], one);
  next.append({largest[0], largest[1], total[0], total[1]});
  if (!attention)
    return next;
  for (auto [one, keeps] : llvm::zip(p, kept(block)))
    one = times(one, keeps);
  WarpTile result = tileOfSize(form.valueSize);
  Emitter::Values sums;
  for (auto [i, sum] : llvm::enumerate(carried.drop_front(4)))
    sums.push_back(times(sum, factor[result.half(i)]));
  next.append(addProduct(p, step.lines, valuesIn(buffer), sums));
  return next;
}

void ForwardBlock::finish(const Head &head, Value query, ValueRange carried) {
  Value result, logSums; // null if the kernel does not compute it
  for (auto [i, yield] : llvm::enumerate(kernel.yields()))
    (attention && yield == attention.getResult() ? result : logSums) = kernel.resultLoadedHere(static_cast<int64_t>(i));
  Value factors[2];
  for (int64_t half : {0, 1}) {
    Value l = overFour(carried[2 + half], [&](Value a, Value b) { return plus(a, b); });
    Value none = isEqual(l, number(0));
    factors[half] = select(none, number(0), arith::DivFOp::create(emit, number(1), l));
    if (!logSums)
      continue;
    Value m = times(carried[half], number(steepness));
    Value logarithm = mt::log(mt::VectorExpr(emit, emit.getLoc(), l)).value();
    Value logSum = select(none, number(0), plus(m, logarithm));
    Value position = emit.add(emit.add(query, warpLine), emit.add(group, 8 * half));
    Value line = emit.add(emit.mul(head.index, form.heads), head.head);
    Value to = emit.address(logSums, emit.getF32Type(), emit.add(emit.mul(line, form.queries), position));
    emit.when(both(emit, emit.less(position, emit.integer(form.queries)), emit.equal(pair, emit.integer(0))),
              [&] { emit.store(logSum, to); });
  }
  if (result)
    storeSums(carried.drop_front(4), form.valueSize, factors, linesOf(result, head, /*ofKeys=*/false, form.valueSize),
              query);
}

GpuGrid mtc::attentionGpuGrid(plan::KernelOp op, int64_t) {
  mt::Attention form(&op.getBody().front().front());
  return {attentionThreads, 1, form.groups * form.heads * ceilDiv(form.queries, attentionLines), 0, 0};
}

LogicalResult mtc::emitBlockAttention(BlockKernel &kernel) {
  auto [attention, logSums] = attentionOf(kernel.body());
  ForwardBlock(kernel, attention, logSums).run();
  return success();
}
