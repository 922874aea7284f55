// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/gpu/Attention.h"
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/TensorCores.h"
#include "dialects/mt/Compilation.h"

using namespace mlir;
using namespace mtc;

static bool isFast(plan::KernelOp op, Type element) {
  return Emitter::isHalf(element) || mt::Compilation(op).getPrecision() == "tf32";
}

AttentionBlock::AttentionBlock(BlockKernel &kernel, Operation *op)
    : kernel(kernel), emit(kernel.emit), form(op), element(elementOf(op->getOperand(0))), way(wayOf(op)),
      fast(isFast(kernel.op, element)), unit(fast ? log2e : 1),
      inputs(emit, op, [&](Value value) { return kernel.argument(cast<BlockArgument>(value).getArgNumber()); }) {
  lane = emit.rem(kernel.thread, emit.integer(warpThreads));
  group = emit.div(lane, emit.integer(4));
  pair = emit.rem(lane, emit.integer(4));
  warpLine = emit.mul(emit.div(kernel.thread, emit.integer(warpThreads)), attentionWarpLines);
}

AttentionBlock::Way AttentionBlock::wayOf(Operation *op) const {
  if (kernel.precision != Precision::tensor)
    return Way::fma;
  if (Emitter::isHalf(element))
    return Way::halves;
  return mt::Compilation(kernel.op).getPrecision() == "tf32" ? Way::singles : Way::fma;
}

// ---- one head

AttentionHead AttentionBlock::headOf(Value sample, Value group, Value head, Value keyHead) {
  return inputs.headOf(kernel, form, sample, group, head, keyHead);
}

HeadLines AttentionBlock::linesOf(Value base, const Head &head, bool ofKeys, int64_t size) {
  int64_t count = ofKeys ? form.keys : form.queries, stride = (ofKeys ? form.keyHeads : form.heads) * size;
  Value offset = emit.add(emit.mul(head.index, count * stride), emit.mul(ofKeys ? head.keyHead : head.head, size));
  return {at(base, offset), stride, size, count};
}

std::pair<Value, Value> AttentionBlock::othersOf(Value own, bool ownIsQuery, int64_t lines) {
  int64_t count = ownIsQuery ? form.keys : form.queries;
  Value first = emit.integer(0), end = emit.integer(count);
  // For a query: keys from `window` positions before it on. For a key: queries from its own position on. In the other
  // direction likewise.
  int64_t before = ownIsQuery ? form.window : form.causal ? 1 : form.window;
  int64_t after = !ownIsQuery ? form.window : form.causal ? 1 : form.window;
  if (before) {
    Value seen = emit.max(emit.add(own, 1 - before), first);
    first = emit.mul(emit.div(seen, emit.integer(lines)), lines);
  }
  if (after)
    end = emit.min(end, emit.add(own, attentionLines - 1 + after));
  return {first, end};
}

// ---- scores

std::pair<Value, Value> AttentionBlock::queryAndKey(const ScoreTile &block, int64_t half, int64_t column) {
  Value own = emit.add(emit.add(block.own, warpLine), emit.add(group, 8 * half));
  Value other = emit.add(block.other, emit.add(emit.mul(pair, 2), column));
  return block.ownIsQuery ? std::pair(own, other) : std::pair(other, own);
}

// Whether, by the positions alone, some query of the warp may not see some key; null: always true, because there is a
// mask.
Value AttentionBlock::mayHide(const ScoreTile &block) {
  if (form.mask)
    return {};
  Value own = emit.add(block.own, warpLine), ownLast = emit.add(own, attentionWarpLines - 1);
  Value other = block.other, otherLast = emit.add(other, block.lines - 1);
  auto [query, key] = block.ownIsQuery ? std::pair(own, other) : std::pair(other, own);
  auto [queryLast, keyLast] = block.ownIsQuery ? std::pair(ownLast, otherLast) : std::pair(otherLast, ownLast);
  Value may = emit.less(emit.integer((block.ownIsQuery ? form.keys : form.queries) - 1), otherLast);
  auto orElse = [&](Value condition) { may = arith::OrIOp::create(emit, may, condition); };
  if (form.causal)
    orElse(emit.less(query, keyLast));
  if (form.window)
    orElse(emit.less(emit.integer(form.window - 1), emit.sub(queryLast, key)));
  if (form.window && !form.causal)
    orElse(emit.less(emit.integer(form.window - 1), emit.sub(keyLast, query)));
  return may;
}

// Compares the distance of query and key in 32 bits: one comparison per element and bound.
Value AttentionBlock::sees(const ScoreTile &block, int64_t half, int64_t column) {
  Type i32 = emit.getI32Type();
  auto narrow = [&](Value index) { return arith::TruncIOp::create(emit, i32, index); };
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(emit, emit.getI32IntegerAttr(static_cast<int32_t>(value)));
  };
  auto compare = [&](Value a, arith::CmpIPredicate how, int64_t bound) -> Value {
    return arith::CmpIOp::create(emit, how, a, constant(bound));
  };
  Value seen;
  auto also = [&](Value condition) { seen = seen ? both(emit, seen, condition) : condition; };
  Value other = narrow(emit.add(block.other, emit.mul(pair, 2)));
  int64_t count = block.ownIsQuery ? form.keys : form.queries;
  if (count % block.lines)
    also(compare(other, arith::CmpIPredicate::slt, count - column));
  // The distance of the other row from the thread's row is this value plus column - 8 half.
  Value distance =
      arith::SubIOp::create(emit, other, narrow(emit.add(emit.add(block.own, warpLine), group))).getResult();
  int64_t more = column - 8 * half;
  auto afterBelow = [&](int64_t bound) { also(compare(distance, arith::CmpIPredicate::slt, bound - more)); };
  auto beforeAbove = [&](int64_t bound) { also(compare(distance, arith::CmpIPredicate::sgt, -bound - more)); };
  // Bounds of the distance for keys after and before their query.
  int64_t after = form.causal ? 1 : form.window, before = form.window;
  if (!block.ownIsQuery)
    std::swap(after, before);
  if (after)
    afterBelow(after);
  if (before)
    beforeAbove(before);
  if (!block.head.mask)
    return seen;
  mt::Attention::MaskSteps steps = form.maskSteps();
  auto [query, key] = queryAndKey(block, half, column);
  query = emit.min(query, emit.integer(form.queries - 1));
  key = emit.min(key, emit.integer(form.keys - 1));
  Value offset = emit.add(emit.mul(query, steps.query), emit.mul(key, steps.key));
  also(emit.load(emit.getI1Type(), emit.address(block.head.mask, emit.getI1Type(), offset)));
  return seen;
}

Emitter::Values AttentionBlock::hide(const ScoreTile &block, ValueRange values, Value instead) {
  int64_t count = block.ownIsQuery ? form.keys : form.queries;
  if (!hides() && count % block.lines == 0)
    return values;
  WarpTile tile = tileOfLines(block.lines);
  auto hidden = [&] {
    Emitter::Values next;
    for (auto [i, value] : llvm::enumerate(values))
      if (Value seen = sees(block, tile.half(i), tile.column(i)))
        next.push_back(select(seen, value, instead));
      else
        next.push_back(value);
    return next;
  };
  Value may = mayHide(block);
  if (!may)
    return hidden();
  auto branch = scf::IfOp::create(emit, values.getTypes(), may, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(emit);
  emit.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(emit, values);
  emit.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(emit, hidden());
  return Emitter::Values(branch->result_begin(), branch->result_end());
}

Emitter::Values AttentionBlock::kept(const ScoreTile &block) {
  Emitter::Values factors;
  WarpTile tile = tileOfLines(block.lines);
  for (int64_t i = 0; inputs.step && i < tile.count(); ++i) {
    auto [query, key] = queryAndKey(block, tile.half(i), tile.column(i));
    Value line = emit.add(emit.mul(block.head.drawn, form.queries), query);
    Value drawn = emitUniform(kernel, inputs.hash, emit.add(emit.mul(line, form.keys), key), inputs.step);
    Value keeps = arith::CmpFOp::create(emit, arith::CmpFPredicate::OGE, drawn, number(inputs.rate));
    factors.push_back(select(keeps, number(1 / (1 - inputs.rate)), number(0)));
  }
  return factors;
}

Value AttentionBlock::exp(Value a) { return fast ? approximateExp2(emit, a) : emitExp(emit, a); }

Value AttentionBlock::overFour(Value a, llvm::function_ref<Value(Value, Value)> combine) {
  for (int64_t mask : {1, 2})
    a = combine(a, kernel.shuffle(a, mask));
  return a;
}

// ---- loop over other rows

Emitter::Values AttentionBlock::walk(Value buffers, int64_t bufferBytes, Step step, std::pair<Value, Value> others,
                                     ValueRange carried, Load load, Visit visit) {
  auto [first, end] = others;
  bool async = way == Way::halves;
  kernel.barrier(); // other threads may still read the buffers
  if (step.buffers == 1)
    return emit.loop(first, end, step.lines, carried, [&](Value position, ValueRange now) {
      load(position, buffers);
      if (async) {
        commitCopies(emit);
        awaitCopies(emit, 0);
      }
      kernel.barrier();
      Emitter::Values next = visit(position, buffers, now);
      kernel.barrier();
      return next;
    });
  emit.when(emit.less(first, end), [&, first = first] { load(first, buffers); });
  if (async)
    commitCopies(emit);
  Emitter::Values all(carried);
  all.push_back(emit.integer(0));
  auto bufferAt = [&](Value offset) { return emit.address(buffers, emit.getI8Type(), offset); };
  Emitter::Values results = emit.loop(first, end, step.lines, all, [&, end = end](Value position, ValueRange now) {
    Value current = now.back(), other = emit.sub(emit.integer(bufferBytes), current);
    if (async)
      awaitCopies(emit, 0);
    kernel.barrier();
    Value following = emit.add(position, step.lines);
    emit.when(emit.less(following, end), [&] { load(following, bufferAt(other)); });
    if (async)
      commitCopies(emit);
    Emitter::Values next = visit(position, bufferAt(current), now.drop_back());
    next.push_back(other);
    return next;
  });
  results.pop_back();
  return results;
}
