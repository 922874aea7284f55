// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/common/Kernel.h"
#include "dialects/mt/VectorExpr.h"

using namespace mlir;
using namespace mtc;

// mt::exp without a subnormal 2^n: for a down to -87, 2^n is a normal number, so n can be added to the exponent of the
// polynomial's value.
Value mtc::emitExp(Emitter &emit, Value a) {
  mt::VectorExpr given(emit, emit.getLoc(), a),
      x = mt::select(given < mt::VectorExpr(-87.0), mt::VectorExpr(-87.0), given);
  constexpr float magic = 12582912.0f;
  mt::VectorExpr shifted = fma(x, mt::VectorExpr(1.44269504088896341), mt::VectorExpr(magic));
  mt::VectorExpr n = shifted - mt::VectorExpr(magic);
  mt::VectorExpr r = fma(n, mt::VectorExpr(-0.693145751953125), x);
  r = fma(n, mt::VectorExpr(-1.42860682030941723e-06), r);
  mt::VectorExpr p = fma(r, mt::VectorExpr(1.98527617612853646e-4), mt::VectorExpr(1.39304355252534151e-3));
  for (double coefficient : {8.33336077630519867e-3, 4.16664853692054749e-2, 1.66666671633720398e-1, 0.5})
    p = fma(p, r, mt::VectorExpr(coefficient));
  p = fma(p, r * r, r) + mt::VectorExpr(1.0);
  Type i32 = emit.getI32Type(), words = i32;
  TypedAttr shift = emit.getI32IntegerAttr(23);
  if (auto vector = dyn_cast<VectorType>(a.getType())) {
    words = vector.clone(i32);
    shift = DenseElementsAttr::get(cast<VectorType>(words), Attribute(shift));
  }
  Value bits = arith::BitcastOp::create(emit, words, p.value());
  Value power = arith::ShLIOp::create(emit, arith::BitcastOp::create(emit, words, shifted.value()),
                                      arith::ConstantOp::create(emit, shift).getResult());
  return arith::BitcastOp::create(emit, a.getType(), arith::AddIOp::create(emit, bits, power));
}
