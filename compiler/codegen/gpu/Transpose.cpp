// SPDX-License-Identifier: Apache-2.0
//
// Transposes a matrix in blocks of 32 x 32 elements through workgroup memory, so that adjacent threads read and write
// adjacent elements.
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/Sizes.h"

using namespace mlir;
using namespace mtc;

LogicalResult mtc::emitBlockTranspose(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  RankedTensorType type = tensorOf(kernel.body().getArgument(0));
  Type element = emit.stored(type.getElementType());
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1), size = transposeSide;
  int64_t across = (columns + size - 1) / size;
  Value firstRow = emit.mul(emit.div(kernel.tile, emit.integer(across)), size);
  Value firstColumn = emit.mul(emit.rem(kernel.tile, emit.integer(across)), size);
  // One extra element per row puts adjacent rows into different banks.
  Value memory = kernel.allocateShared(element, size * (size + 1));
  auto forElements = [&](int64_t height, int64_t width, Value top, Value first,
                         llvm::function_ref<void(Value, Value, Value)> each) {
    kernel.forThreads(size * size, [&](Value index) {
      Value i = emit.div(index, emit.integer(size)), j = emit.rem(index, emit.integer(size));
      Value row = emit.add(top, i), column = emit.add(first, j);
      emit.when(both(emit, emit.less(row, emit.integer(height)), emit.less(column, emit.integer(width))),
                [&] { each(i, j, emit.add(emit.mul(row, width), column)); });
    });
  };
  auto at = [&](Value line, Value column) {
    return emit.address(memory, element, emit.add(emit.mul(line, size + 1), column));
  };
  forElements(rows, columns, firstRow, firstColumn, [&](Value i, Value j, Value index) {
    emit.store(emit.load(element, emit.address(kernel.argument(0), element, index)), at(i, j));
  });
  kernel.barrier();
  forElements(columns, rows, firstColumn, firstRow, [&](Value i, Value j, Value index) {
    emit.store(emit.load(element, at(j, i)), emit.address(kernel.result(0), element, index));
  });
  return success();
}
