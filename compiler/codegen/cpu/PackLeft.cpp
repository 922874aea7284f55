// SPDX-License-Identifier: Apache-2.0
//
// Packs the left side of products tile by tile, so that a tile reads it as one stream.
#include "compiler/codegen/cpu/Tile.h"

using namespace mlir;
using namespace mtc;

// Elements of a vector here. A tile has no more rows.
static constexpr int64_t width = 8;

static VectorType narrow(Emitter &emit, Type element) { return VectorType::get({width}, element); }

// The floats that the mask selects, and zeros; null: all.
static Value loadSome(Emitter &emit, Value address, Value mask) {
  VectorType floats = narrow(emit, emit.realType());
  if (!mask)
    return LLVM::LoadOp::create(emit, floats, address, 4);
  return LLVM::MaskedLoadOp::create(emit, floats, address, mask, emit.zeros(floats), 4);
}

// Mask of the first `count` elements.
static Value firstOf(Emitter &emit, Value count) {
  SmallVector<int32_t> low = llvm::to_vector(llvm::seq<int32_t>(0, width));
  Value all = emit.maskBelow(count);
  return LLVM::ShuffleVectorOp::create(emit, all, all, low);
}
static Value firstOf(Emitter &emit, int64_t count) {
  if (count == width)
    return {};
  SmallVector<bool> bits(width);
  std::fill_n(bits.begin(), count, true);
  return arith::ConstantOp::create(emit, DenseElementsAttr::get(narrow(emit, emit.getI1Type()), ArrayRef<bool>(bits)));
}

// The function for tiles of `rows` rows, one below the other: (a, stride, depth, to, toStride, tiles). Vectors of eight
// floats are stored in ascending order, and what one writes after its `rows` floats is overwritten by the next one.
static LLVM::LLVMFuncOp packFunction(Emitter &emit, Layout layout, int64_t rows) {
  std::string name = (Twine(layout == Layout::rows ? "pack_left_rows_" : "pack_left_columns_") + Twine(rows)).str();
  if (LLVM::LLVMFuncOp known = emit.lookup(name))
    return known;
  Type pointer = emit.pointer(), i64 = emit.getI64Type(), f32 = emit.realType();
  return emit.function(name, {pointer, i64, i64, pointer, i64, i64}, /*internal=*/true, [&](ValueRange arguments) {
    Value stride = arguments[1], depth = arguments[2], tiles = arguments[5], none = emit.integer(0);
    auto store = [&](Value vector, Value address) { LLVM::StoreOp::create(emit, vector, address, 4); };
    auto target = [&](Value tile, Value k) {
      Value to = emit.address(arguments[3], f32, emit.mul(emit.mul(tile, rows), arguments[4]));
      return emit.address(to, f32, emit.mul(k, rows));
    };
    Value whole = emit.mul(emit.div(depth, emit.integer(width)), width);
    if (layout == Layout::rows) {
      emit.loop(none, tiles, 1, [&](Value tile) {
        Value a = emit.address(arguments[0], f32, emit.mul(emit.mul(tile, rows), stride));
        auto pack = [&](Value k, Value mask) {
          Emitter::Values vectors(width, LLVM::PoisonOp::create(emit, narrow(emit, f32)));
          for (int64_t row = 0; row < rows; ++row)
            vectors[row] = loadSome(emit, emit.address(emit.address(a, f32, emit.mul(stride, row)), f32, k), mask);
          transposeInRegisters(emit, vectors);
          Value to = target(tile, k);
          for (auto [column, vector] : llvm::enumerate(vectors))
            store(vector, emit.address(to, f32, static_cast<int64_t>(column) * rows));
        };
        emit.loop(none, whole, width, [&](Value k) { pack(k, {}); });
        emit.when(emit.less(whole, depth), [&] { pack(whole, firstOf(emit, emit.sub(depth, whole))); });
      });
      return;
    }
    // Some columns at a time, which stay in the first-level cache while all tiles take their rows.
    auto pack = [&](Value k, int64_t count) {
      Value column = emit.address(arguments[0], f32, emit.mul(k, stride));
      emit.loop(none, tiles, 1, [&](Value tile) {
        Value from = emit.address(column, f32, emit.mul(tile, rows)), to = target(tile, k);
        for (int64_t i = 0; i < count; ++i)
          store(loadSome(emit, emit.address(from, f32, emit.mul(stride, i)), firstOf(emit, rows)),
                emit.address(to, f32, i * rows));
      });
    };
    emit.loop(none, whole, width, [&](Value k) { pack(k, width); });
    emit.loop(whole, depth, 1, [&](Value k) { pack(k, 1); });
  });
}

void mtc::emitPackLeft(Emitter &emit, Layout layout, Value a, int64_t stride, Value depth, Value to, int64_t toStride,
                       Value rows) {
  Type f32 = emit.realType();
  int64_t most = emit.vectors.tileRows(1);
  assert(most <= width && "a vector holds a column of a tile");
  forTiles(emit, most, rows, [&](Value row, Value count, int64_t height) {
    Value from = emit.address(a, f32, layout == Layout::rows ? emit.mul(row, stride) : row);
    emit.call(packFunction(emit, layout, height),
              {from, emit.integer(stride), depth, emit.address(to, f32, emit.mul(row, toStride)),
               emit.integer(toStride), count});
  });
}
