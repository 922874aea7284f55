// SPDX-License-Identifier: Apache-2.0
//
// Products of panels by tensor cores: mma.m16n8k8 of TF32, whose operands come from the same panels as those of FMAs. A
// lane is (g, t) = (lane / 4, lane % 4). It has rows g and g + 8, columns 2 t and 2 t + 1 of a piece of the result.
#include "compiler/codegen/gpu/Product.h"
#include "compiler/codegen/gpu/TensorCores.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mtc;

// The shape of the instruction (PTX ISA, mma), not a choice.
constexpr int64_t pieceRows = 16, pieceColumns = 8, pieceDepth = 8;

void ProductBlock::divideAmongWarps() {
  Value lane = emit.rem(kernel.thread, emit.integer(32)), warp = emit.div(kernel.thread, emit.integer(32));
  Value across = emit.integer(tile.columns / warpColumns());
  row = emit.mul(emit.div(warp, across), warpRows());
  column = emit.mul(emit.rem(warp, across), warpColumns());
  lineInWarp = emit.div(lane, emit.integer(4));
  kInWarp = emit.rem(lane, emit.integer(4));
}

// As the tensor cores will take it.
Value ProductBlock::rounded(Value element) {
  if (!isTensor())
    return element;
  Value bits = NVVM::ConvertFloatToTF32Op::create(emit, emit.getI32Type(), element, NVVM::FPRoundingMode::RNA,
                                                  NVVM::SaturationMode::NONE, /*relu=*/false);
  return arith::BitcastOp::create(emit, emit.getF32Type(), bits);
}

Emitter::Values ProductBlock::multiplyPieces(Value panels, ValueRange sums) {
  Type f32 = emit.getF32Type(), i32 = emit.getI32Type();
  int64_t down = warpRows() / pieceRows, across = warpColumns() / pieceColumns;
  auto first = [&](bool left) {
    Value line = emit.add(left ? row : column, lineInWarp);
    return emit.address(panels, f32, emit.add(emit.mul(kInWarp, stride(left)), line),
                        left ? 0 : tile.depth * stride(true));
  };
  Value left = first(true), right = first(false);
  Emitter::Values next(sums);
  for (int64_t k = 0; k < tile.depth; k += pieceDepth) {
    auto word = [&](bool isLeft, int64_t more, int64_t line) {
      return emit.load(i32, emit.address(isLeft ? left : right, f32, (k + more) * stride(isLeft) + line));
    };
    SmallVector<Emitter::Values> b(across);
    for (int64_t j = 0; j < across; ++j)
      b[j] = {word(false, 0, j * pieceColumns), word(false, 4, j * pieceColumns)};
    for (int64_t i = 0; i < down; ++i) {
      int64_t line = i * pieceRows;
      Emitter::Values a{word(true, 0, line), word(true, 0, line + 8), word(true, 4, line), word(true, 4, line + 8)};
      for (int64_t j = 0; j < across; ++j) {
        MutableArrayRef<Value> piece = MutableArrayRef<Value>(next).slice((i * across + j) * 4, 4);
        llvm::copy(multiplySingles(emit, a, b[j], ValueRange(piece)), piece.begin());
      }
    }
  }
  return next;
}

// All rows of a warp, or none.
void ProductBlock::stagePieces(ValueRange sums, int64_t firstRow, int64_t rows) {
  Type f32 = emit.getF32Type();
  int64_t across = warpColumns() / pieceColumns;
  Value line = emit.sub(row, emit.integer(firstRow));
  Value here = both(emit, emit.less(emit.integer(-1), line), emit.less(line, emit.integer(rows)));
  emit.when(here, [&] {
    Value start = emit.add(column, emit.mul(kInWarp, 2));
    Value to = emit.address(memory, f32, emit.add(emit.mul(emit.add(line, lineInWarp), tile.columns), start));
    for (int64_t i = 0; i < count(); i += 2) {
      int64_t piece = i / 4, down = piece / across * pieceRows + i % 4 / 2 * 8, right = piece % across * pieceColumns;
      storeChunk(emit, sums.slice(i, 2), emit.address(to, f32, down * tile.columns + right));
    }
  });
}
