// SPDX-License-Identifier: Apache-2.0
//
// Elementwise kernels, and rows kernels in which every value has one element per row: 16 elements at a time, with a
// masked chunk at the end.
#include "compiler/codegen/cpu/Kernels.h"
#include "compiler/codegen/cpu/Lines.h"

using namespace mlir;
using namespace mtc;

void mtc::forChunks(Emitter &emit, Value from, Value to, llvm::function_ref<void(Value index, Value mask)> each) {
  Value whole = emit.mul(emit.div(emit.sub(to, from), emit.integer(lanes)), lanes);
  Value end = emit.add(from, whole);
  emit.loop(from, end, lanes, [&](Value index) { each(index, Value()); });
  emit.when(emit.less(end, to), [&] { each(end, emit.maskBelow(emit.sub(to, end))); });
}

LogicalResult mtc::emitLine(Kernel &kernel, Value from, Value to, llvm::function_ref<bool(Value)> isScalar) {
  Emitter &emit = kernel.emit;
  SmallVector<Value> arguments, results;
  for (auto [i, argument] : llvm::enumerate(kernel.body().getArguments())) {
    Value pointer = kernel.argumentBuffer(i);
    arguments.push_back(isScalar(argument) ? emit.splat(emit.load(elementOf(argument), pointer)) : pointer);
  }
  for (int64_t i = 0, e = kernel.yields().size(); i < e; ++i)
    results.push_back(kernel.resultBuffer(i));
  auto loadNumber = [&](Value argument) {
    return emit.load(elementOf(argument), kernel.argumentBuffer(cast<BlockArgument>(argument).getArgNumber()));
  };
  forChunks(emit, from, to, [&](Value index, Value mask) {
    VectorBody body(kernel, /*scalar=*/false, [&](Value value) -> Value {
      if (auto argument = dyn_cast<BlockArgument>(value)) {
        Value pointer = arguments[argument.getArgNumber()];
        Type element = elementOf(value);
        return isScalar(value) ? pointer : emit.loadLanes(element, emit.address(pointer, element, index), mask);
      }
      if (auto random = value.getDefiningOp<mt::RandomUniformOp>(); random && !random.getStep())
        return emitUniform(kernel, random, isSplit(value) ? emit.add(index, kernel.firstRow()) : index, loadNumber);
      return Value();
    });
    SmallVector<Value> computed;
    for (Value value : kernel.yields())
      computed.push_back(body.get(value));
    for (auto [value, result, yield] : llvm::zip_equal(computed, results, kernel.yields())) {
      Type element = elementOf(yield);
      emit.storeLanes(element, value, emit.address(result, element, index), mask);
    }
  });
  return success();
}

LogicalResult mtc::emitElementwise(Kernel &kernel) {
  Emitter &emit = kernel.emit;
  int64_t tile = kernel.grid.elementsPerTile;
  Value from = emit.mul(kernel.tileBegin, tile);
  Value to = emit.min(emit.mul(kernel.tileEnd, tile), kernel.count());
  // A body whose results have rank 0 is for one element.
  int64_t resultRank = tensorOf(kernel.yields()[0]).getRank();
  return emitLine(kernel, from, to, [&](Value value) { return resultRank > 0 && tensorOf(value).getRank() == 0; });
}

void mtc::emitSum(Kernel &kernel) {
  Emitter &emit = kernel.emit;
  // The runtime counts words of 32 bits. A double has two of them.
  int64_t words = emit.vectors.doubles ? 2 : 1, tile = kernel.grid.elementsPerTile / words;
  auto count = [&] { return words == 1 ? kernel.count() : emit.div(kernel.count(), emit.integer(words)); };
  Value from = emit.mul(kernel.tileBegin, tile);
  Value to = emit.min(emit.mul(kernel.tileEnd, tile), count());
  Value a = kernel.buffer(0), b = kernel.buffer(1), out = kernel.buffer(2);
  Type f32 = emit.realType();
  forChunks(emit, from, to, [&](Value index, Value mask) {
    Value left = emit.loadLanes(f32, emit.address(a, f32, index), mask);
    Value right = emit.loadLanes(f32, emit.address(b, f32, index), mask);
    emit.storeLanes(arith::AddFOp::create(emit, left, right), emit.address(out, f32, index), mask);
  });
}
