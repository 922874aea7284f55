// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cpu/Tile.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mtc;

void mtc::forPanels(Emitter &emit, int64_t columns, Value from, Value to, llvm::function_ref<void(Value, Panel)> body) {
  int64_t width = emit.vectors.tileVectors() * lanes;
  int64_t whole = columns / width * width, rest = columns - whole;
  Panel wide{emit.vectors.tileVectors(), lanes};
  Panel last{(rest + lanes - 1) / lanes, (rest - 1) % lanes + 1};
  if (whole > 0)
    emit.loop(from, emit.min(to, emit.integer(whole)), width, [&](Value column) { body(column, wide); });
  if (rest > 0)
    emit.when(emit.less(emit.integer(whole), to), [&] { body(emit.integer(whole), last); });
}

Value mtc::lowerHalf(Emitter &emit, Value vector) {
  return LLVM::ShuffleVectorOp::create(emit, vector, vector, llvm::to_vector(llvm::seq<int32_t>(0, lanes / 2)));
}

namespace {
// Accesses to the vectors of a tile: 16 floats or pairs, or the lower half of them.
struct TileVectors {
  Emitter &emit;
  bool half;

  Value load(Type element, Value address) const {
    if (!half)
      return emit.loadLanes(element, address);
    return LLVM::LoadOp::create(emit, VectorType::get({lanes / 2}, element), address, 4);
  }
  void store(Value vector, Value address) const {
    if (half)
      LLVM::StoreOp::create(emit, vector, address, 4);
    else
      emit.storeLanes(vector, address);
  }
  Value zeros() const {
    Type f32 = emit.realType();
    return emit.zeros(half ? Type(VectorType::get({lanes / 2}, f32)) : emit.vectorOf(f32));
  }
  Value splat(Value scalar) const {
    Value all = emit.splat(scalar);
    return half ? lowerHalf(emit, all) : all;
  }
};
} // namespace

Emitter::Values mtc::emitOuterProduct(Emitter &emit, Terms terms, ArrayRef<Value> a, Value b, int64_t vectors,
                                      ValueRange sums, bool half) {
  Type f32 = emit.realType(), unit = unitType(emit, terms);
  TileVectors access{emit, half};
  Emitter::Values next(sums), right;
  for (int64_t vector = 0; vector < vectors; ++vector)
    right.push_back(access.load(unit, emit.address(b, f32, vector * lanes)));
  for (auto [row, address] : llvm::enumerate(a)) {
    Value repeated = access.splat(emit.load(unit, address));
    for (int64_t vector = 0; vector < vectors; ++vector) {
      Value &sum = next[row * vectors + vector];
      sum = addProduct(emit, terms, repeated, right[vector], sum);
    }
  }
  return next;
}
Emitter::Values mtc::emitOuterProduct(Emitter &emit, Terms terms, Value a, Value b, int64_t rows, int64_t vectors,
                                      ValueRange sums, bool half) {
  SmallVector<Value> addresses;
  for (int64_t row = 0; row < rows; ++row)
    addresses.push_back(emit.address(a, emit.realType(), row));
  return emitOuterProduct(emit, terms, addresses, b, vectors, sums, half);
}

// The function for tiles of `rows` rows, one below the other: (a, stride, packed, depth, sums, tiles).
static LLVM::LLVMFuncOp tileFunction(Emitter &emit, Terms terms, Layout layout, int64_t rows, int64_t vectors,
                                     bool half, Sums sums) {
  StringRef order = layout == Layout::rows ? "rows" : layout == Layout::columns ? "columns" : "tiles";
  std::string name = ("tile_" + order + "_" + Twine(rows) + "x" + Twine(vectors) + suffixOf(terms)).str();
  if (half)
    name += "_half";
  if (sums == Sums::fresh)
    name += "_fresh";
  if (LLVM::LLVMFuncOp known = emit.lookup(name))
    return known;
  Type pointer = emit.pointer(), i64 = emit.getI64Type(), f32 = emit.realType();
  int64_t width = vectors * lanes;
  TileVectors access{emit, half};
  return emit.function(name, {pointer, i64, pointer, i64, pointer, i64}, /*internal=*/true, [&](ValueRange arguments) {
    Value stride = arguments[1], packed = arguments[2], depth = arguments[3];
    emit.loop(emit.integer(0), arguments[5], 1, [&](Value tile) {
      Value row = emit.mul(tile, rows);
      Value a = emit.address(arguments[0], f32, layout == Layout::columns ? row : emit.mul(row, stride));
      Value to = emit.address(arguments[4], f32, emit.mul(row, width));
      SmallVector<Value> addresses, starts, rowBases;
      for (int64_t row = 0; row < rows; ++row) {
        if (layout == Layout::rows)
          rowBases.push_back(emit.address(a, f32, emit.mul(stride, row)));
        for (int64_t vector = 0; vector < vectors; ++vector) {
          addresses.push_back(emit.address(to, f32, row * width + vector * lanes));
          starts.push_back(sums == Sums::fresh ? access.zeros() : access.load(f32, addresses.back()));
        }
      }
      Emitter::Values ends = emit.loop(emit.integer(0), depth, 1, starts, [&](Value k, ValueRange carried) {
        Value b = emit.address(packed, f32, emit.mul(k, width));
        if (layout != Layout::rows) {
          Value step = layout == Layout::tiles ? emit.mul(k, rows) : emit.mul(k, stride);
          return emitOuterProduct(emit, terms, emit.address(a, f32, step), b, rows, vectors, carried, half);
        }
        Emitter::Values elements;
        for (Value base : rowBases)
          elements.push_back(emit.address(base, f32, k));
        return emitOuterProduct(emit, terms, elements, b, vectors, carried, half);
      });
      for (auto [address, end] : llvm::zip_equal(addresses, ends))
        access.store(end, address);
    });
  });
}

void mtc::forTiles(Emitter &emit, int64_t most, Value rows, llvm::function_ref<void(Value, Value, int64_t)> tiles) {
  if (IntegerAttr known; matchPattern(rows, m_Constant(&known))) {
    int64_t all = known.getInt(), number = (all + most - 1) / most, height = all / number, higher = all % number;
    if (higher > 0)
      tiles(emit.integer(0), emit.integer(higher), height + 1);
    return tiles(emit.integer(higher * (height + 1)), emit.integer(number - higher), height);
  }
  Value count = emit.ceilDiv(rows, most);
  Value height = emit.div(rows, count), higher = emit.rem(rows, count);
  for (int64_t rows = most; rows >= 1; --rows) {
    // Higher tiles, if there are any, come first.
    if (rows > 1)
      emit.when(emit.equal(height, emit.integer(rows - 1)),
                [&] { emit.when(emit.less(emit.integer(0), higher), [&] { tiles(emit.integer(0), higher, rows); }); });
    emit.when(emit.equal(height, emit.integer(rows)),
              [&] { tiles(emit.mul(higher, rows + 1), emit.sub(count, higher), rows); });
  }
}

void mtc::emitProduct(Emitter &emit, Layout layout, Panel panel, Value a, Value stride, Value packed, Value depth,
                      Value sums, Value rows, Sums start, Terms terms) {
  Type f32 = emit.realType();
  // A panel of few columns is half a vector wide, and its tiles have up to twice the rows; each row of a left side in
  // rows takes an address. A packed left side has the rows of other tiles, and columns that a panel does not have are
  // not computed, so their sums must be there.
  bool half = !emit.vectors.isWide() && panel.vectors == 1 && panel.last <= lanes / 2 && layout != Layout::tiles &&
              start == Sums::there;
  int64_t most = emit.vectors.tileRows(panel.vectors);
  if (half)
    most = layout == Layout::rows ? most * 4 / 3 : most * 2;
  emitChains(emit, terms, [&] {
    forTiles(emit, most, rows, [&](Value row, Value count, int64_t height) {
      Value from = emit.address(a, f32, layout == Layout::columns ? row : emit.mul(row, stride));
      Value to = emit.address(sums, f32, emit.mul(row, panel.width()));
      emit.call(tileFunction(emit, terms, layout, height, panel.vectors, half, start),
                {from, stride, packed, depth, to, count});
    });
  });
}

void mtc::forVectors(Emitter &emit, Panel panel, Value rows, llvm::function_ref<void(Value)> each) {
  emit.loop(emit.integer(0), emit.mul(rows, panel.width()), lanes, each);
}
