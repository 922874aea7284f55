// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cpu/Terms.h"
#include "compiler/codegen/cpu/Lines.h"

using namespace mlir;
using namespace mtc;

Terms mtc::termsOf(const Emitter &emit, Type left, Type right) {
  if (!left.isBF16() || !right.isBF16())
    return Terms::single;
  return emit.vectors.dots ? Terms::pairs : Terms::swapped;
}

int64_t mtc::unitsOf(Terms terms, int64_t count) {
  return terms == Terms::single ? count : terms == Terms::pairs ? (count + 1) / 2 : (count + 1) / 2 * 2;
}
Value mtc::unitsOf(Emitter &emit, Terms terms, Value count) {
  if (terms == Terms::single)
    return count;
  Value pairs = emit.ceilDiv(count, 2);
  return terms == Terms::pairs ? pairs : emit.mul(pairs, 2);
}

Type mtc::unitType(Emitter &emit, Terms terms) {
  return terms == Terms::pairs ? Type(emit.getI32Type()) : emit.realType();
}

Value mtc::addProduct(Emitter &emit, Terms terms, Value a, Value b, Value sum) {
  return terms == Terms::pairs ? emit.dot(a, b, sum) : emit.fma(a, b, sum);
}

void mtc::emitChains(Emitter &emit, Terms terms, llvm::function_ref<void()> body) {
  // Instructions for pairs take subnormal numbers as zero in any case.
  terms == Terms::swapped ? emit.flushed(body) : body();
}

Value mtc::missingTerms(Emitter &emit, TermSide side) {
  return emit.splatConstant(emit.getI16IntegerAttr(side == TermSide::left ? 0 : INT16_MIN));
}

Value mtc::exchanged(Emitter &emit, Value vector) {
  SmallVector<int32_t> order;
  for (int32_t lane = 0; lane < lanes; ++lane)
    order.push_back(lane ^ 1);
  return LLVM::ShuffleVectorOp::create(emit, vector, vector, order);
}

void mtc::storePairs(Emitter &emit, Terms terms, Value first, Value second, Value to, int64_t step, Value mask) {
  Type f32 = emit.realType(), bf16 = emit.getBF16Type();
  if (terms == Terms::swapped) {
    emit.storeLanes(emit.extend(bf16, second), to, mask);
    return emit.storeLanes(emit.extend(bf16, first), emit.address(to, f32, step), mask);
  }
  SmallVector<int32_t> order;
  for (int32_t lane = 0; lane < lanes; ++lane)
    llvm::append_values(order, lane, int32_t(lanes) + lane);
  Value words = LLVM::ShuffleVectorOp::create(emit, first, second, order);
  emit.storeLanes(LLVM::BitcastOp::create(emit, emit.vectorOf(emit.getI32Type()), words), to, mask);
}

void mtc::forPairs(Emitter &emit, Terms terms, Value count, llvm::function_ref<void(Value, Value, bool)> each) {
  Value pairs = emit.div(count, emit.integer(2)), whole = emit.mul(pairs, 2);
  auto unit = [&](Value term) { return terms == Terms::pairs ? emit.div(term, emit.integer(2)) : term; };
  emit.loop(emit.integer(0), whole, 2, [&](Value term) { each(term, unit(term), false); });
  emit.when(emit.less(whole, count), [&] { each(whole, unit(whole), true); });
}

void mtc::packRows(Emitter &emit, Terms terms, TermSide side, Value from, int64_t stride, Value rows, Value columns,
                   Value to, int64_t step) {
  Type f32 = emit.realType(), i16 = emit.getI16Type();
  forPairs(emit, terms, rows, [&](Value row, Value unit, bool alone) {
    Value source = emit.address(from, i16, emit.mul(row, stride)), target = emit.address(to, f32, emit.mul(unit, step));
    forChunks(emit, emit.integer(0), columns, [&](Value index, Value mask) {
      Value first = emit.loadLanes(i16, emit.address(source, i16, index), mask);
      Value second =
          alone ? missingTerms(emit, side) : emit.loadLanes(i16, emit.address(source, i16, index, stride), mask);
      storePairs(emit, terms, first, second, emit.address(target, f32, index), step);
    });
  });
}
