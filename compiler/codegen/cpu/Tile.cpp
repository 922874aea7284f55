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
// Accesses to the vectors of a tile: 16 floats or pairs, or the lower half of them in the last vector of a row.
struct TileVectors {
  Emitter &emit;
  int64_t vectors;
  bool half; // of the last vector

  bool isHalf(int64_t vector) const { return half && vector + 1 == vectors; }
  Value load(int64_t vector, Type element, Value address) const {
    if (!isHalf(vector))
      return emit.loadLanes(element, address);
    return LLVM::LoadOp::create(emit, VectorType::get({lanes / 2}, element), address, 4);
  }
  void store(int64_t vector, Value value, Value address) const {
    if (isHalf(vector))
      LLVM::StoreOp::create(emit, value, address, 4);
    else
      emit.storeLanes(value, address);
  }
  Value zeros(int64_t vector) const {
    Type f32 = emit.realType();
    return emit.zeros(isHalf(vector) ? Type(VectorType::get({lanes / 2}, f32)) : emit.vectorOf(f32));
  }
};
} // namespace

Emitter::Values mtc::emitOuterProduct(Emitter &emit, Terms terms, ArrayRef<Value> a, Value b, int64_t vectors,
                                      ValueRange sums, bool half) {
  Type f32 = emit.realType(), unit = unitType(emit, terms);
  TileVectors access{emit, vectors, half};
  Emitter::Values next(sums), right;
  for (int64_t vector = 0; vector < vectors; ++vector)
    right.push_back(access.load(vector, unit, emit.address(b, f32, vector * lanes)));
  for (auto [row, address] : llvm::enumerate(a)) {
    Value element = emit.load(unit, address), repeated = emit.splat(element), lower;
    if (half) // not of `repeated`: LLVM would emit a shuffle
      emit.tail(lanes / 2, [&](Value) { lower = emit.splat(element); });
    for (int64_t vector = 0; vector < vectors; ++vector) {
      Value &sum = next[row * vectors + vector];
      sum = addProduct(emit, terms, access.isHalf(vector) ? lower : repeated, right[vector], sum);
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

namespace {
// A tile of a product.
struct ProductTile {
  Terms terms;
  Layout layout;
  int64_t rows, vectors;
  bool half; // of the last vector
  Sums sums;
  int64_t last; // columns of the last vector that are written

  std::string name() const {
    StringRef order = layout == Layout::rows ? "rows" : layout == Layout::columns ? "columns" : "tiles";
    std::string text = ("tile_" + order + "_" + Twine(rows) + "x" + Twine(vectors) + suffixOf(terms)).str();
    if (half)
      text += "_half";
    if (sums == Sums::exact)
      return text + "_exact" + std::to_string(last);
    return sums == Sums::fresh ? text + "_fresh" : text;
  }
};
} // namespace

// The function for tiles, one below the other: (a, stride, packed, depth, sums, tiles), and the distance of the rows of
// exact sums.
static LLVM::LLVMFuncOp tileFunction(Emitter &emit, const ProductTile &form) {
  std::string name = form.name();
  if (LLVM::LLVMFuncOp known = emit.lookup(name))
    return known;
  Type pointer = emit.pointer(), i64 = emit.getI64Type(), f32 = emit.realType();
  int64_t rows = form.rows, vectors = form.vectors, width = vectors * lanes;
  bool exact = form.sums == Sums::exact;
  TileVectors access{emit, vectors, form.half};
  SmallVector<Type> types{pointer, i64, pointer, i64, pointer, i64};
  if (exact)
    types.push_back(i64);
  return emit.function(name, types, /*internal=*/true, [&](ValueRange arguments) {
    Value stride = arguments[1], packed = arguments[2], depth = arguments[3];
    emit.loop(emit.integer(0), arguments[5], 1, [&](Value tile) {
      Value row = emit.mul(tile, rows);
      Value a = emit.address(arguments[0], f32, form.layout == Layout::columns ? row : emit.mul(row, stride));
      Value to = emit.address(arguments[4], f32, exact ? emit.mul(row, arguments[6]) : emit.mul(row, width));
      SmallVector<Value> addresses, starts, rowBases;
      for (int64_t row = 0; row < rows; ++row) {
        if (form.layout == Layout::rows)
          rowBases.push_back(emit.address(a, f32, emit.mul(stride, row)));
        Value line = exact ? emit.address(to, f32, emit.mul(arguments[6], row)) : emit.address(to, f32, row * width);
        for (int64_t vector = 0; vector < vectors; ++vector) {
          addresses.push_back(emit.address(line, f32, vector * lanes));
          starts.push_back(form.sums == Sums::there ? access.load(vector, f32, addresses.back())
                                                    : access.zeros(vector));
        }
      }
      Emitter::Values ends = emit.loop(emit.integer(0), depth, 1, starts, [&](Value k, ValueRange carried) {
        Value b = emit.address(packed, f32, emit.mul(k, width));
        if (form.layout != Layout::rows) {
          Value step = form.layout == Layout::tiles ? emit.mul(k, rows) : emit.mul(k, stride);
          return emitOuterProduct(emit, form.terms, emit.address(a, f32, step), b, rows, vectors, carried, form.half);
        }
        Emitter::Values elements;
        for (Value base : rowBases)
          elements.push_back(emit.address(base, f32, k));
        return emitOuterProduct(emit, form.terms, elements, b, vectors, carried, form.half);
      });
      for (auto [i, address, end] : llvm::enumerate(addresses, ends)) {
        int64_t vector = static_cast<int64_t>(i) % vectors;
        if (exact && vector + 1 == vectors)
          emit.tail(form.last,
                    [&, end = end, address = address](Value mask) { emit.storeLanes(emit.first(end), address, mask); });
        else
          access.store(vector, end, address);
      }
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
                      Value sums, Value rows, Sums start, Terms terms, Value step) {
  Type f32 = emit.realType();
  // Where the last vector of a panel has few columns, its tiles have half of it: fewer multiplications on CPUs whose
  // units are half as wide, and with few registers up to twice the rows; each row of a left side in rows takes an
  // address. A packed left side has the rows of other tiles. Columns that are not computed must be there, or are not
  // written.
  bool wide = emit.vectors.isWide(), half = panel.last <= lanes / 2 && (wide || panel.vectors == 1) &&
                                            layout != Layout::tiles && start != Sums::fresh && terms != Terms::pairs;
  int64_t most = emit.vectors.tileRows(panel.vectors);
  if (half && !wide)
    most = layout == Layout::rows ? most * 4 / 3 : most * 2;
  Value distance = step ? step : emit.integer(panel.width());
  emitChains(emit, terms, [&] {
    forTiles(emit, most, rows, [&](Value row, Value count, int64_t height) {
      Value from = emit.address(a, f32, layout == Layout::columns ? row : emit.mul(row, stride));
      Value to = emit.address(sums, f32, emit.mul(row, distance));
      SmallVector<Value> operands{from, stride, packed, depth, to, count};
      if (start == Sums::exact)
        operands.push_back(distance);
      emit.call(tileFunction(emit, {terms, layout, height, panel.vectors, half, start, panel.last}), operands);
    });
  });
}

void mtc::forVectors(Emitter &emit, Panel panel, Value rows, llvm::function_ref<void(Value)> each) {
  emit.loop(emit.integer(0), emit.mul(rows, panel.width()), lanes, each);
}
