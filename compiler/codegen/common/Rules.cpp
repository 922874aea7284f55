// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/common/Rules.h"

using namespace mlir;
using namespace mtc;

Value mtc::identityOf(Emitter &emit, mt::Reduction kind) {
  float infinity = std::numeric_limits<float>::infinity();
  float value = kind == mt::Reduction::sum ? 0.0f : kind == mt::Reduction::max ? -infinity : infinity;
  return arith::ConstantOp::create(emit, emit.getF32FloatAttr(value));
}

Value mtc::combine(Emitter &emit, mt::Reduction kind, Value running, Value next) {
  if (kind == mt::Reduction::sum)
    return arith::AddFOp::create(emit, running, next);
  auto better = kind == mt::Reduction::max ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT;
  return arith::SelectOp::create(emit, arith::CmpFOp::create(emit, better, next, running), next, running);
}

Emitter::Values mtc::firstLargest(Emitter &emit, ValueRange best, Value next, Value number) {
  Value none = arith::CmpIOp::create(emit, arith::CmpIPredicate::slt, best[1], emit.zeros(best[1].getType()));
  Value larger = arith::CmpFOp::create(emit, arith::CmpFPredicate::OGT, next, best[0]);
  Value better = arith::OrIOp::create(emit, larger, none);
  return {arith::SelectOp::create(emit, better, next, best[0]), arith::SelectOp::create(emit, better, number, best[1])};
}

Value mtc::entryOf(Emitter &emit, Value id, int64_t entries) {
  Value entry = arith::ExtSIOp::create(emit, emit.getI64Type(), id);
  return emit.least(emit.most(entry, emit.integer(0)), emit.integer(entries - 1));
}

Value mtc::fillOf(Emitter &emit, mt::MoveOpInterface op) {
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  if (!isa<FloatType>(element))
    return emit.zeros(element);
  return arith::ConstantOp::create(emit, emit.getF32FloatAttr(op.getFill().convertToFloat()));
}

Taps mtc::tapsInside(Emitter &emit, const mt::Window &window, Value output) {
  Value start = emit.add(emit.mul(output, window.stride), -window.low);
  return {emit.most(emit.integer(0), emit.sub(emit.integer(0), start)),
          emit.least(emit.integer(window.taps), emit.sub(emit.integer(window.inputs), start))};
}
