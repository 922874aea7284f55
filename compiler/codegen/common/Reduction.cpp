// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/common/Reduction.h"

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
