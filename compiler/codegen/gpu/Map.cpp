// SPDX-License-Identifier: Apache-2.0
//
// Map kernels and the sum of two roots: an element is one thread's.
#include "compiler/codegen/gpu/Block.h"

using namespace mlir;
using namespace mtc;

LogicalResult mtc::emitBlockMap(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  int64_t tile = kernel.gpu.elementsPerTile;
  Value from = emit.mul(kernel.tile, tile), to = emit.least(emit.add(from, tile), kernel.elements);
  // A body whose results have rank 0 is for one element.
  int64_t resultRank = tensorOf(kernel.yields()[0]).getRank();
  SmallVector<Value> scalars;
  for (auto [i, argument] : llvm::enumerate(kernel.body().getArguments())) {
    bool isScalar = resultRank > 0 && tensorOf(argument).getRank() == 0;
    scalars.push_back(isScalar ? emit.load(elementOf(argument), kernel.argument(i)) : Value());
  }
  LogicalResult status = success();
  kernel.forThreads(from, to, [&](Value index) {
    LaneBody body(kernel, /*scalar=*/true, [&](Value value) -> Value {
      if (auto random = value.getDefiningOp<mt::RandomUniformOp>(); random && !random.getStep())
        return emitUniform(kernel, random, index, Value(), /*scalar=*/true);
      auto argument = dyn_cast<BlockArgument>(value);
      if (!argument)
        return Value();
      if (Value scalar = scalars[argument.getArgNumber()])
        return scalar;
      Value base = kernel.argument(argument.getArgNumber());
      return emit.load(elementOf(value), emit.address(base, elementOf(value), index));
    });
    SmallVector<Value> computed;
    for (Value value : kernel.yields()) {
      computed.push_back(body.get(value));
      if (!computed.back()) {
        status = kernel.op.emitError("expected element-wise operations only in a kernel of kind map");
        return;
      }
    }
    for (auto [i, value] : llvm::enumerate(computed)) {
      Type element = elementOf(kernel.yields()[i]);
      emit.store(element, value, emit.address(kernel.result(i), element, index));
    }
  });
  return status;
}

void mtc::emitBlockSum(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  Type f32 = emit.getF32Type();
  int64_t tile = kernel.gpu.elementsPerTile;
  Value from = emit.mul(kernel.tile, tile), to = emit.least(emit.add(from, tile), kernel.elements);
  kernel.forThreads(from, to, [&](Value index) {
    auto at = [&](int64_t buffer) { return emit.address(kernel.places[buffer], f32, index); };
    emit.store(arith::AddFOp::create(emit, emit.load(f32, at(0)), emit.load(f32, at(1))), at(2));
  });
}
