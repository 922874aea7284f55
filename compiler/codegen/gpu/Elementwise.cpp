// SPDX-License-Identifier: Apache-2.0
//
// Elementwise kernels, and the sum of two partial sums: each thread has four adjacent elements, so that it loads and
// stores 16 bytes at once.
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/Sizes.h"

using namespace mlir;
using namespace mtc;

// Calls `each` for the elements of a thread in a tile: for all of them, or, at the end of the segment, for one after
// the other.
static void forElements(BlockKernel &kernel, llvm::function_ref<void(ArrayRef<Value> indices)> each) {
  static_assert(elementwiseTile == elementwiseThreads * elementsPerThread);
  Emitter &emit = kernel.emit;
  Value first = emit.add(emit.mul(kernel.tile, elementwiseTile), emit.mul(kernel.thread, elementsPerThread));
  SmallVector<Value> all;
  for (int64_t i = 0; i < elementsPerThread; ++i)
    all.push_back(emit.add(first, i));
  emit.when(
      emit.less(all.back(), kernel.elements), [&] { each(all); },
      [&] { emit.loop(first, kernel.elements, 1, [&](Value index) { each(index); }); });
}

LogicalResult mtc::emitBlockElementwise(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  // A body whose results have rank 0 is for one element.
  int64_t resultRank = tensorOf(kernel.yields()[0]).getRank();
  SmallVector<Value> scalars;
  for (auto [i, argument] : llvm::enumerate(kernel.body().getArguments())) {
    bool isScalar = resultRank > 0 && tensorOf(argument).getRank() == 0;
    scalars.push_back(isScalar ? emit.load(elementOf(argument), kernel.argument(i)) : Value());
  }
  auto loadNumber = [&](Value argument) {
    return emit.load(elementOf(argument), kernel.argument(cast<BlockArgument>(argument).getArgNumber()));
  };
  auto compute = [&](Value index, SmallVectorImpl<BlockStore> &stores) {
    VectorBody body(kernel, /*scalar=*/true, [&](Value value) -> Value {
      if (auto random = value.getDefiningOp<mt::RandomUniformOp>(); random && !random.getStep())
        return emitUniform(kernel, random, index, loadNumber, /*scalar=*/true);
      auto argument = dyn_cast<BlockArgument>(value);
      if (!argument)
        return Value();
      if (Value scalar = scalars[argument.getArgNumber()])
        return scalar;
      Value base = kernel.argument(argument.getArgNumber());
      return emit.load(elementOf(value), emit.address(base, elementOf(value), index));
    });
    for (auto [i, value] : llvm::enumerate(kernel.yields())) {
      Value computed = body.get(value);
      Type element = elementOf(value);
      stores.push_back({element, computed, emit.address(kernel.result(i), element, index)});
    }
  };
  forElements(kernel, [&](ArrayRef<Value> indices) {
    SmallVector<BlockStore> stores; // all loads precede them, because results may overwrite operands
    for (Value index : indices)
      compute(index, stores);
    storeAdjacent(emit, stores, static_cast<int64_t>(indices.size()));
  });
  return success();
}

void mtc::emitBlockSum(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  Type f32 = emit.getF32Type();
  forElements(kernel, [&](ArrayRef<Value> indices) {
    SmallVector<Value> sums;
    auto at = [&](int64_t buffer, Value index) { return emit.address(kernel.pointers[buffer], f32, index); };
    for (Value index : indices)
      sums.push_back(arith::AddFOp::create(emit, emit.load(f32, at(0, index)), emit.load(f32, at(1, index))));
    for (auto [index, sum] : llvm::zip_equal(indices, sums))
      emit.store(sum, at(2, index));
  });
}
