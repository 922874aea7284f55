// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cpu/Offsets.h"
#include <map>

using namespace mlir;
using namespace mtc;

bool mtc::hasHalfVector(const VectorUnit &unit, Panel panel, bool lanewise) {
  return !unit.isWide() && !lanewise && panel.last <= lanes / 2;
}

int64_t mtc::offsetTileRows(const VectorUnit &unit, Panel panel, bool lanewise, int64_t taps) {
  constexpr int64_t rows[] = {0, 14, 12, 8, 6};
  int64_t vectors = panel.vectors;
  // Twelve halves of vectors are sums.
  if (!unit.isWide())
    return 12 / (2 * vectors - (hasHalfVector(unit, panel, lanewise) ? 1 : 0));
  if (taps == 1)
    return rows[vectors];
  // With 32 registers, one holds an element of a, and `taps * vectors` hold rows of b.
  return std::min<int64_t>(20, (31 - taps * vectors) / vectors);
}

SmallVector<std::pair<int64_t, int64_t>> mtc::cutEvenly(int64_t count, int64_t most) {
  SmallVector<std::pair<int64_t, int64_t>> parts;
  int64_t tiles = (count + most - 1) / most;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    int64_t from = count * tile / tiles;
    parts.push_back({from, count * (tile + 1) / tiles - from});
  }
  return parts;
}

LogicalResult mtc::checkOffsets(const Kernel &kernel) {
  Block &body = kernel.op->getRegion(0).front();
  auto check = [&](Value value) -> LogicalResult {
    int64_t elements = mt::elementsPerRow(value.getType());
    if (llvm::isInt<32>(elements))
      return success();
    return kernel.op->emitError("expected at most ")
           << std::numeric_limits<int32_t>::max() << " elements of a sample in a convolution, found " << elements
           << " in " << value.getType();
  };
  for (Value argument : body.getArguments())
    if (failed(check(argument)))
      return failure();
  for (Value result : body.getTerminator()->getOperands())
    if (failed(check(result)))
      return failure();
  return success();
}

Value mtc::emitTable(Emitter &emit, ArrayRef<int64_t> values) {
  assert(llvm::all_of(values, llvm::isInt<32>) && "checked by `checkOffsets`");
  SmallVector<int32_t> narrow(values.begin(), values.end());
  // An extra, different entry, because equal entries would make a splat.
  narrow.push_back(narrow.empty() ? 0 : narrow.back() - 1);
  auto type = RankedTensorType::get({static_cast<int64_t>(narrow.size())}, emit.getI32Type());
  return emit.global(DenseElementsAttr::get(type, ArrayRef<int32_t>(narrow)));
}

Value mtc::loadTable(Emitter &emit, Value table, Value index) {
  Type i32 = emit.getI32Type();
  return arith::ExtSIOp::create(emit, emit.getI64Type(), emit.load(i32, emit.address(table, i32, index)));
}

static std::string nameOf(ArrayRef<int64_t> rowOffsets, Panel panel, TileForm form, bool half) {
  std::string name = (Twine("offsets_") + (form.lanewise ? "lanes_" : "") + Twine(panel.vectors)).str();
  if (form.masked && panel.last < lanes)
    name += "_last" + std::to_string(panel.last);
  else if (form.lanewise && panel.last < lanes)
    name += "_of" + std::to_string(panel.last);
  if (form.scattered)
    name += "_scattered";
  if (half)
    name += "_half";
  for (int64_t offset : rowOffsets)
    name += "_" + std::to_string(offset);
  for (int64_t tap : ArrayRef(form.taps).drop_front())
    name += "_tap" + std::to_string(tap);
  return name + suffixOf(form.terms).str();
}

namespace {
// Pairs of a row and a tap that read the same element of a.
using Readers = SmallVector<std::pair<int64_t, int64_t>>;
} // namespace

// Readers of each element, by its offset. Taps ascend, so the taps of a row are in order.
static std::map<int64_t, Readers> readersOf(ArrayRef<int64_t> rowOffsets, ArrayRef<int64_t> taps) {
  std::map<int64_t, Readers> readers;
  for (auto [row, offset] : llvm::enumerate(rowOffsets))
    for (auto [index, tap] : llvm::enumerate(taps))
      readers[offset + tap].push_back({row, index});
  return readers;
}

namespace {
// Accesses to the vectors of a panel, the last of which may be half a vector.
struct PanelVectors {
  Emitter &emit;
  Panel panel;
  bool half;

  bool isHalf(int64_t vector) const { return half && vector % panel.vectors + 1 == panel.vectors; }
  Type typeOf(int64_t vector, Type element) const {
    return isHalf(vector) ? Type(VectorType::get({lanes / 2}, element)) : emit.vectorOf(element);
  }
  // `mask` has 16 lanes.
  Value load(int64_t vector, Type element, Value address, Value mask = {}) const {
    if (!isHalf(vector))
      return emit.loadLanes(element, address, mask);
    Type type = typeOf(vector, element);
    if (!mask || panel.last == lanes / 2)
      return LLVM::LoadOp::create(emit, type, address, 4);
    return LLVM::MaskedLoadOp::create(emit, type, address, lowerHalf(emit, mask), emit.zeros(type), 4);
  }
  void store(int64_t vector, Value value, Value address) const {
    if (isHalf(vector))
      LLVM::StoreOp::create(emit, value, address, 4);
    else
      emit.storeLanes(value, address);
  }
};
} // namespace

// Zeros if `fresh`, else the vectors at the addresses.
static Emitter::Values startsOf(Emitter &emit, const PanelVectors &vectors, Value fresh, ArrayRef<Value> addresses) {
  Type f32 = emit.realType();
  SmallVector<Type> types;
  for (size_t i = 0; i < addresses.size(); ++i)
    types.push_back(vectors.typeOf(i, f32));
  auto choice = scf::IfOp::create(emit, types, fresh, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(emit);
  emit.setInsertionPointToEnd(choice.thenBlock());
  Emitter::Values zeros, loaded;
  for (Type type : types)
    zeros.push_back(emit.zeros(type));
  scf::YieldOp::create(emit, zeros);
  emit.setInsertionPointToEnd(choice.elseBlock());
  for (auto [i, address] : llvm::enumerate(addresses))
    loaded.push_back(vectors.load(i, f32, address));
  scf::YieldOp::create(emit, loaded);
  return choice.getResults();
}

static LLVM::LLVMFuncOp tileFunction(Emitter &emit, ArrayRef<int64_t> rowOffsets, Panel panel, TileForm form) {
  PanelVectors vectors{emit, panel, hasHalfVector(emit.vectors, panel, form.lanewise)};
  std::string name = nameOf(rowOffsets, panel, form, vectors.half);
  if (LLVM::LLVMFuncOp known = emit.lookup(name))
    return known;
  Type pointer = emit.pointer(), i64 = emit.getI64Type(), f32 = emit.realType(), unit = unitType(emit, form.terms);
  Type step = form.scattered ? pointer : i64;
  return emit.function(
      name, {pointer, pointer, pointer, step, i64, pointer, emit.getI1Type()}, /*internal=*/true,
      [&](ValueRange arguments) {
        Value a = arguments[0], table = arguments[1], b = arguments[2], stride = arguments[3], sums = arguments[5];
        SmallVector<Value> addresses;
        for (size_t row = 0; row < rowOffsets.size(); ++row)
          for (int64_t vector = 0; vector < panel.vectors; ++vector)
            addresses.push_back(emit.address(sums, f32, row * panel.width() + vector * lanes));
        Emitter::Values starts = startsOf(emit, vectors, arguments[6], addresses);
        Value last = panel.last < lanes ? emit.maskBelow(panel.last) : Value();
        auto maskOf = [&](int64_t vector, bool wanted) {
          return wanted && vector + 1 == panel.vectors ? last : Value();
        };
        std::map<int64_t, Readers> readers = readersOf(rowOffsets, form.taps);
        Emitter::Values ends = emit.loop(emit.integer(0), arguments[4], 1, starts, [&](Value k, ValueRange carried) {
          Value line = emit.address(b, f32, form.scattered ? loadTable(emit, stride, k) : emit.mul(k, stride));
          Value column = emit.address(a, f32, loadTable(emit, table, k));
          Emitter::Values next(carried), right;
          for (size_t tap = 0; tap < form.taps.size(); ++tap)
            for (int64_t vector = 0; vector < panel.vectors; ++vector)
              right.push_back(vectors.load(vector, unit, emit.address(line, f32, tap * panel.width() + vector * lanes),
                                           maskOf(vector, form.masked)));
          for (const auto &[offset, pairs] : readers) {
            Value left = form.lanewise ? Value() : emit.splat(emit.load(unit, emit.address(column, f32, offset)));
            for (auto [row, tap] : pairs)
              for (int64_t vector = 0; vector < panel.vectors; ++vector) {
                if (form.lanewise)
                  left = emit.loadLanes(f32, emit.address(column, f32, offset + vector * lanes), maskOf(vector, true));
                Value &sum = next[row * panel.vectors + vector];
                Value factor = vectors.isHalf(vector) ? lowerHalf(emit, left) : left;
                sum = addProduct(emit, form.terms, factor, right[tap * panel.vectors + vector], sum);
              }
          }
          return next;
        });
        for (auto [i, address] : llvm::enumerate(addresses))
          vectors.store(i, ends[i], address);
      });
}

void mtc::emitOffsetTile(Emitter &emit, ArrayRef<int64_t> rowOffsets, Panel panel, TileForm form,
                         const TileOperands &operands) {
  emit.call(tileFunction(emit, rowOffsets, panel, form),
            {operands.a, operands.table, operands.b, operands.stride, operands.depth, operands.sums, operands.fresh});
}

void mtc::forColumnPanels(Emitter &emit, int64_t columns, int64_t vectors,
                          llvm::function_ref<void(Value, Panel)> body) {
  int64_t width = vectors * lanes, whole = columns / width * width, rest = columns - whole;
  if (whole > 0)
    emit.loop(emit.integer(0), emit.integer(whole), width, [&](Value column) { body(column, Panel{vectors, lanes}); });
  if (rest > 0)
    body(emit.integer(whole), Panel{(rest + lanes - 1) / lanes, (rest - 1) % lanes + 1});
}
