// SPDX-License-Identifier: Apache-2.0
//
// Map kernels, kernels of rows whose every value is one element a row, and the sum of two roots: an element is one
// thread's.
#include "compiler/codegen/gpu/Block.h"

using namespace mlir;
using namespace mtc;

// Elements [from, to) of every result, all operands but the scalar ones indexed alike.
static LogicalResult emitElements(BlockKernel &kernel, Value from, Value to, llvm::function_ref<bool(Value)> isScalar) {
  Emitter &emit = kernel.emit;
  bool complete = true;
  SmallVector<Value> scalars;
  for (auto [i, argument] : llvm::enumerate(kernel.body().getArguments()))
    scalars.push_back(isScalar(argument) ? emit.load(elementOf(argument), kernel.argument(i)) : Value());
  Value firstRow = kernel.firstRow();
  kernel.forThreads(from, to, [&](Value index) {
    LaneBody body(kernel, /*scalar=*/true, [&](Value value) -> Value {
      if (auto argument = dyn_cast<BlockArgument>(value)) {
        if (Value scalar = scalars[argument.getArgNumber()])
          return scalar;
        return emit.load(elementOf(value),
                         emit.address(kernel.argument(argument.getArgNumber()), elementOf(value), index));
      }
      if (auto random = value.getDefiningOp<mt::RandomUniformOp>(); random && !random.getStep())
        return emitUniform(kernel, random, isSplit(value) ? emit.add(index, firstRow) : index, Value(),
                           /*scalar=*/true);
      return Value();
    });
    SmallVector<Value> computed;
    for (Value value : kernel.yields()) {
      computed.push_back(body.get(value));
      complete &= static_cast<bool>(computed.back());
    }
    for (auto [i, value] : llvm::enumerate(computed))
      if (value)
        emit.store(value, emit.address(kernel.result(i), value.getType(), index));
  });
  if (!complete)
    return kernel.op.emitError("expected element-wise operations only in a kernel of kind map");
  return success();
}

LogicalResult mtc::emitBlockMap(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  int64_t tile = kernel.gpu.elementsPerTile;
  Value from = emit.mul(kernel.tile, tile), to = emit.least(emit.add(from, tile), kernel.elements);
  // A body whose results have rank 0 is for one element.
  int64_t resultRank = tensorOf(kernel.yields()[0]).getRank();
  return emitElements(kernel, from, to, [&](Value value) { return resultRank > 0 && tensorOf(value).getRank() == 0; });
}

LogicalResult mtc::emitBlockLine(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  Value from = emit.mul(kernel.tile, kernel.gpu.rowsPerTile);
  Value to = emit.least(emit.add(from, kernel.gpu.rowsPerTile), kernel.rows());
  return emitElements(kernel, from, to, [](Value value) { return !isSplit(value); });
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
