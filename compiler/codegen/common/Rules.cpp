// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/common/Rules.h"

using namespace mlir;
using namespace mtc;

Value mtc::identityOf(Emitter &emit, mt::Reduction kind, Type element) {
  return arith::ConstantOp::create(emit, mt::startOf(kind, element));
}
Value mtc::identityOf(Emitter &emit, mt::ReduceOp op) {
  return identityOf(emit, op.getKind(), elementOf(op.getResult()));
}

Value mtc::startOf(Emitter &emit, mt::WindowOpInterface op) {
  return arith::ConstantOp::create(emit, emit.realAttr(op.getWindowStart()));
}

Value mtc::combine(Emitter &emit, mt::Reduction kind, Value running, Value next) {
  return mt::combine(emit, emit.getLoc(), kind, running, next);
}

Value mtc::beats(Emitter &emit, Value a, Value b) {
  if (getElementTypeOrSelf(a.getType()).isInteger())
    return arith::CmpIOp::create(emit, arith::CmpIPredicate::sgt, a, b);
  Value larger = arith::CmpFOp::create(emit, arith::CmpFPredicate::UGT, a, b);
  Value isNumber = arith::CmpFOp::create(emit, arith::CmpFPredicate::ORD, b, b);
  return arith::AndIOp::create(emit, larger, isNumber);
}

Emitter::Values mtc::firstLargest(Emitter &emit, ValueRange best, Value next, Value number) {
  Value none = arith::CmpIOp::create(emit, arith::CmpIPredicate::slt, best[1], emit.zeros(best[1].getType()));
  Value better = arith::OrIOp::create(emit, beats(emit, next, best[0]), none);
  return {arith::SelectOp::create(emit, better, next, best[0]), arith::SelectOp::create(emit, better, number, best[1])};
}

Value mtc::entryOf(Emitter &emit, Value id, int64_t entries) {
  Value entry = arith::ExtSIOp::create(emit, emit.getI64Type(), id);
  return emit.min(emit.max(entry, emit.integer(0)), emit.integer(entries - 1));
}

Value mtc::fillOf(Emitter &emit, mt::MoveOpInterface op) {
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  if (element.isInteger())
    return arith::ConstantOp::create(
        emit, emit.getIntegerAttr(element, static_cast<int64_t>(op.getFill().convertToDouble())));
  return arith::ConstantOp::create(emit, emit.realAttr(op.getFill().convertToDouble()));
}

bool mtc::areTapsInside(const mt::Window &window) {
  return window.low == 0 && (window.outputs - 1) * window.stride + window.reach() <= window.inputs;
}

Taps mtc::tapsInside(Emitter &emit, const mt::Window &window, Value output) {
  if (areTapsInside(window))
    return {emit.integer(0), emit.integer(window.taps)}; // constants, so that loops over the taps unroll
  Value start = emit.add(emit.mul(output, window.stride), -window.low);
  return {emit.max(emit.integer(0), emit.sub(emit.integer(0), start)),
          emit.min(emit.integer(window.taps), emit.sub(emit.integer(window.inputs), start))};
}
