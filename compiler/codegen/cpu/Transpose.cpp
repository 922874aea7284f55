// SPDX-License-Identifier: Apache-2.0
//
// Transposes a matrix in blocks of 16 x 16 elements, which are transposed in registers.
#include "compiler/codegen/common/Kernel.h"
#include "compiler/codegen/cpu/Kernels.h"
#include "compiler/codegen/cpu/Tile.h"

using namespace mlir;
using namespace mtc;

// For each power of two, exchanges the halves of pairs of vectors that are on the wrong side of the diagonal.
void mtc::transposeInRegisters(Emitter &emit, Emitter::Values &vectors) {
  auto side = static_cast<int64_t>(vectors.size());
  for (int64_t half = side / 2; half >= 1; half /= 2) {
    SmallVector<int32_t> first, second;
    for (int32_t lane = 0; lane < side; ++lane) {
      bool low = (lane & half) == 0;
      first.push_back(low ? lane : side + lane - half);
      second.push_back(low ? lane + half : side + lane);
    }
    for (int64_t row = 0; row < side; ++row) {
      if (row & half)
        continue;
      Value &low = vectors[row], &high = vectors[row + half];
      Value top = LLVM::ShuffleVectorOp::create(emit, low, high, first);
      high = LLVM::ShuffleVectorOp::create(emit, low, high, second);
      low = top;
    }
  }
}

// The function for a block: (from, stride of its rows, to, stride of the result's rows, rows, columns), strides in
// elements. A block of fewer than 16 rows or columns accesses only its own elements.
static LLVM::LLVMFuncOp blockFunction(Emitter &emit, Type element, bool whole) {
  std::string name = (Twine("turn_") + Twine(emit.bytes(element)) + (whole ? "" : "_part")).str();
  if (LLVM::LLVMFuncOp known = emit.lookup(name))
    return known;
  Type pointer = emit.pointer(), i64 = emit.getI64Type();
  return emit.function(name, {pointer, i64, pointer, i64, i64, i64}, /*internal=*/true, [&](ValueRange arguments) {
    auto [from, fromStep, to, toStep, rows, columns] =
        std::tuple(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    // Mask of row `index` of `count` rows; empty after the last row.
    auto maskOf = [&](int64_t index, Value count, Value width) {
      Value none = emit.integer(0);
      return whole ? Value()
                   : emit.maskBelow(arith::SelectOp::create(emit, emit.less(emit.integer(index), count), width, none));
    };
    Type held = emit.stored(element);
    Emitter::Values vectors;
    for (int64_t row = 0; row < lanes; ++row)
      vectors.push_back(
          emit.loadLanes(held, emit.address(from, held, emit.mul(fromStep, row)), maskOf(row, rows, columns)));
    transposeInRegisters(emit, vectors);
    for (auto [column, vector] : llvm::enumerate(vectors))
      emit.storeLanes(vector, emit.address(to, held, emit.mul(toStep, column)), maskOf(column, columns, rows));
  });
}

LogicalResult mtc::emitTranspose(Kernel &kernel) {
  Emitter &emit = kernel.emit;
  RankedTensorType type = tensorOf(kernel.body().getArgument(0));
  Type element = type.getElementType();
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  int64_t wholeRows = rows / lanes, wholeColumns = columns / lanes * lanes;
  Value from = kernel.argumentBuffer(0), to = kernel.resultBuffer(0);
  Value fromStep = emit.integer(columns), toStep = emit.integer(rows), sixteen = emit.integer(lanes);
  auto block = [&](Value row, Value column, bool whole, Value height, Value width) {
    Value source = emit.address(from, element, emit.add(emit.mul(row, columns), column));
    Value target = emit.address(to, element, emit.add(emit.mul(column, rows), row));
    emit.call(blockFunction(emit, element, whole), {source, fromStep, target, toStep, height, width});
  };
  auto line = [&](Value row, bool whole, Value height) {
    if (wholeColumns > 0)
      emit.loop(emit.integer(0), emit.integer(wholeColumns), lanes,
                [&](Value column) { block(row, column, whole, height, sixteen); });
    if (wholeColumns < columns)
      block(row, emit.integer(wholeColumns), false, height, emit.integer(columns - wholeColumns));
  };
  static_assert(transposeRows == lanes);
  Value wholeEnd = emit.min(kernel.tileEnd, emit.integer(wholeRows));
  emit.loop(kernel.tileBegin, wholeEnd, 1, [&](Value tile) { line(emit.mul(tile, lanes), true, sixteen); });
  if (wholeRows * lanes < rows)
    emit.when(emit.less(emit.integer(wholeRows), kernel.tileEnd),
              [&] { line(emit.integer(wholeRows * lanes), false, emit.integer(rows - wholeRows * lanes)); });
  return success();
}
