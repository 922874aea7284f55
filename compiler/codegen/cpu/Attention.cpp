// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cpu/Attention.h"
#include "compiler/codegen/common/Rounding.h"
#include "compiler/codegen/cpu/Lines.h"

using namespace mlir;
using namespace mtc;

static int64_t widthOf(int64_t size) { return ceilDiv(size, lanes) * lanes; }

static Panel queryPanel(const Emitter &emit) { return {std::min<int64_t>(2, emit.vectors.tileVectors()), lanes}; }

AttentionEmitter::AttentionEmitter(Kernel &kernel, Operation *op)
    : form(op), panel(queryPanel(kernel.emit)), keyWidth(widthOf(form.keySize)), valueWidth(widthOf(form.valueSize)),
      element(elementOf(op->getOperand(0))), kernel(kernel), emit(kernel.emit),
      inputs(emit, op, [&](Value value) { return kernel.argumentBuffer(cast<BlockArgument>(value).getArgNumber()); }) {}

AttentionHead AttentionEmitter::headOf(Value sample, Value group, Value head, Value keyHead) {
  return inputs.headOf(kernel, form, sample, group, head, keyHead);
}

Value AttentionEmitter::lineOf(Value base, const Head &head, bool ofKeys, int64_t size, Value position) {
  Value line = emit.add(emit.mul(head.index, ofKeys ? form.keys : form.queries), position);
  Value offset = emit.add(emit.mul(line, strideOf(ofKeys, size)), emit.mul(ofKeys ? head.keyHead : head.head, size));
  return channel(base, offset);
}

void AttentionEmitter::storeRounded(Value number, Value address, Value mask) {
  if (Emitter::isHalf(element))
    number = emitRounded(emit, element, number);
  emit.storeLanes(element, number, address, mask);
}

void AttentionEmitter::zero(Value to, Value floats) {
  Value zeros = emit.zeros(emit.vectorOf(emit.realType()));
  emit.loop(emit.integer(0), floats, lanes, [&](Value index) { emit.storeLanes(zeros, lane(to, index)); });
}

void AttentionEmitter::copyLines(Value from, int64_t stride, int64_t size, Value count, float scale, Value to) {
  int64_t width = widthOf(size);
  emit.loop(emit.integer(0), count, 1, [&](Value row) {
    Value source = channel(from, emit.mul(row, stride)), target = lane(to, emit.mul(row, width));
    for (int64_t column = 0; column < size; column += lanes) {
      Value mask = column + lanes > size ? emit.maskBelow(size - column) : Value();
      Value line = emit.loadLanes(element, channel(source, emit.integer(column)), mask);
      emit.storeLanes(scale == 1 ? line : times(line, splat(scale)), lane(target, column));
    }
  });
}

void AttentionEmitter::copyQueries(Value from, int64_t stride, int64_t size, Value count, float scale, Value to) {
  copyLines(from, stride, size, count, scale, to);
  Value rest = emit.sub(emit.integer(attentionQueries), count);
  zero(lane(to, emit.mul(count, widthOf(size))), emit.mul(rest, widthOf(size)));
}

void AttentionEmitter::transposeLines(Value lines, int64_t size, int64_t width, Value to) {
  emit.loop(emit.integer(0), emit.integer(attentionQueries), panelWidth(), [&](Value query) {
    Value at = emit.mul(query, width);
    emitPackTransposed(emit, panel, lane(lines, at), width, emit.integer(size), lane(to, at));
  });
}

void AttentionEmitter::packLines(Value from, int64_t stride, int64_t size, Value rows, int64_t height, Value to) {
  forColumns(size, [&](Value column, Panel columns) {
    emitPack(emit, columns, lane(from, column), stride, rows, lane(to, emit.mul(column, height)));
  });
}

void AttentionEmitter::forColumns(int64_t size, llvm::function_ref<void(Value, Panel)> body) {
  forPanels(emit, size, emit.integer(0), emit.integer(size), body);
}

// Range [first, end) of the keys that some query of the block attends to; `first` is rounded down to a block of keys.
std::pair<Value, Value> AttentionEmitter::keysOf(Value query, Value count) {
  Value first = emit.integer(0), end = emit.integer(form.keys), last = emit.add(query, count);
  if (form.window) {
    Value seen = emit.max(emit.add(query, 1 - form.window), emit.integer(0));
    first = emit.mul(emit.div(seen, emit.integer(attentionKeys)), attentionKeys);
  }
  if (form.causal)
    end = emit.min(end, last);
  else if (form.window)
    end = emit.min(end, emit.add(last, form.window - 1));
  return {first, end};
}

// Number of keys of the block at `key` to which a query of the panel at `query` may attend; 0 or less: none.
Value AttentionEmitter::keysOfPanel(Value key, Value end, Value query) {
  if (form.causal) {
    Value group = emit.div(query, emit.integer(attentionSkipped));
    end = emit.min(end, emit.mul(emit.add(group, 1), attentionSkipped));
  }
  return emit.min(emit.sub(end, key), emit.integer(attentionKeys));
}

void AttentionEmitter::walkKeys(Value query, Value count, int64_t group, llvm::function_ref<void(Value, Value)> load,
                                llvm::function_ref<void(Value, Value, Value)> visit) {
  auto [first, end] = keysOf(query, count);
  emit.loop(first, end, attentionKeys, [&, end = end](Value key) {
    load(key, emit.min(emit.sub(end, key), emit.integer(attentionKeys)));
    emit.loop(emit.integer(0), count, group, [&](Value at) {
      Value seen = keysOfPanel(key, end, emit.add(query, at));
      emit.when(emit.less(emit.integer(0), seen), [&] { visit(at, key, seen); });
    });
  });
}

void AttentionEmitter::emitScores(Value lines, int64_t width, int64_t depth, Value transposed, Value rows, Value to) {
  emitProduct(emit, Layout::rows, panel, lines, emit.integer(width), transposed, emit.integer(depth), to, rows,
              Sums::fresh);
}

void AttentionEmitter::forSeen(Value key, Value keys, Value query, llvm::function_ref<void(Value, Value, bool)> body) {
  Value none = emit.integer(0);
  if (form.mask)
    return body(none, keys, true);
  Value seen = keys; // number of leading keys that every query of the panel sees
  if (form.causal)
    seen = emit.max(none, emit.min(keys, emit.sub(emit.add(query, 1), key)));
  if (form.window) {
    // With a window, no key counts as seen by all unless all keys of the block are in the windows of the first and the
    // last query.
    Value near = emit.less(emit.sub(emit.add(query, panelWidth() - 1), key), emit.integer(form.window));
    if (!form.causal)
      near = arith::AndIOp::create(emit, near,
                                   emit.less(emit.sub(emit.add(key, keys), query), emit.integer(form.window + 1)));
    seen = select(near, seen, none);
  }
  body(none, seen, false);
  if (form.causal || form.window)
    body(seen, keys, true);
}

Value AttentionEmitter::seenLanes(const Head &head, Value key, Value query) {
  Type i32 = emit.getI32Type();
  Value seen;
  auto both = [&](Value condition) { seen = seen ? Value(arith::AndIOp::create(emit, seen, condition)) : condition; };
  auto splatOf = [&](Value index) { return emit.splat(arith::TruncIOp::create(emit, i32, index)); };
  Value distance; // number of the key minus number of the query
  if (form.causal || form.window) {
    Value queries = arith::AddIOp::create(emit, splatOf(query), emit.laneNumbers());
    distance = arith::SubIOp::create(emit, splatOf(key), queries);
  }
  auto below = [&](Value number, int64_t limit) {
    Value bound = emit.splatConstant(emit.getI32IntegerAttr(static_cast<int32_t>(limit)));
    return arith::CmpIOp::create(emit, arith::CmpIPredicate::slt, number, bound);
  };
  auto above = [&](Value number, int64_t limit) {
    Value bound = emit.splatConstant(emit.getI32IntegerAttr(static_cast<int32_t>(limit)));
    return arith::CmpIOp::create(emit, arith::CmpIPredicate::sgt, number, bound);
  };
  if (form.causal)
    both(below(distance, 1));
  if (form.window) {
    both(above(distance, -form.window));
    if (!form.causal)
      both(below(distance, form.window));
  }
  if (!head.mask)
    return seen;
  mt::Attention::MaskSteps steps = form.maskSteps();
  Value at = emit.address(head.mask, emit.getI1Type(), emit.mul(key, steps.key));
  if (steps.query == 0) {
    both(emit.splat(emit.load(emit.getI1Type(), at)));
    return seen;
  }
  Value given = LLVM::PoisonOp::create(emit, emit.vectorOf(emit.getI1Type()));
  Value last = emit.integer(form.queries - 1);
  for (int64_t number = 0; number < lanes; ++number) {
    Value offset = emit.mul(emit.min(emit.add(query, number), last), steps.query);
    Value one = emit.load(emit.getI1Type(), emit.address(at, emit.getI1Type(), offset));
    given = LLVM::InsertElementOp::create(emit, given, one,
                                          arith::ConstantOp::create(emit, emit.getI32IntegerAttr(number)));
  }
  both(given);
  return seen;
}

Value AttentionEmitter::keptLanes(const Head &head, Value key, Value query) {
  if (!inputs.step)
    return {};
  Value element = emit.add(emit.mul(emit.add(emit.mul(head.drawn, form.queries), query), form.keys), key);
  Value number = emitUniform(kernel, inputs.hash, element, form.keys, inputs.step);
  Value kept = arith::CmpFOp::create(emit, arith::CmpFPredicate::OGE, number, splat(inputs.rate));
  return select(kept, splat(1 / (1 - inputs.rate)), splat(0));
}
