// SPDX-License-Identifier: Apache-2.0
//
// Gradients of convolutions to their kernels: the product of (taps x channels, positions) and (positions, filters),
// summed over the positions of each sample in order, samples of a leaf in order, leaves by the tree. Sums of a bundle
// of rows wait in memory from block to block. Where filters are few, the product is turned: for each row of taps
// (filters, positions) times (positions, taps of the row x channels).
#include "compiler/codegen/Offsets.h"
#include "compiler/codegen/Plane.h"
#include "compiler/codegen/Tree.h"

using namespace mlir;
using namespace mtc;

// Rows of a unit, the tile of the grid, and units of a bundle.
static constexpr int64_t unitRows = 12, bundleUnits = 48;

namespace {
// Rows (kh, kw, c), turned (kh, filter), of the result that one tile computes: where each reads, relative to the first.
struct RowUnit {
  int64_t first, start; // row; its offset
  SmallVector<int64_t> offsets;
  int64_t line = 0; // turned: offset of the row of taps in the source
};

class KernelGradientEmitter {
public:
  KernelGradientEmitter(Kernel &kernel, mt::Conv2DKernelGradientOp op);
  LogicalResult run();

private:
  Kernel &kernel;
  Emitter &emit;
  Leaves leaves;
  Product product;
  const Plane &plane;
  bool turned;
  int64_t height; // rows of the result of one group
  std::vector<RowUnit> units;
  Value source, gradient, result, patch, starts, patterns, firsts, tapLines;
  SmallVector<SmallVector<int64_t>> shapes; // different offsets of units

  struct Part {
    Value group, column;
    Panel panel;
    Value from, to; // units
    Value row;      // first
    Value sums;
    Value packed; // the gradient at the positions of a block; null: read where it lies
    Value start;  // first sample of the leaf
  };
  void emitBundle(const Part &part);
  void emitSample(const Part &part, Value sample);
  void emitBlock(const Part &part, Value sample, Value row, Value rows, BlockColumn column, int64_t columns);
  void emitUnits(const Part &part, Value a, const TileOperands &common, TileForm form);
  void store(const Part &part, Value count);
  void storeTurned(const Part &part, Value count);
};
} // namespace

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Floats of the source that a row of taps reads at a position.
static int64_t lineFloats(const Product &product) { return product.planes.front().tapColumns() * product.tapDepth(); }

// Whether vectors along a row of taps are used so much better than vectors along the filters. One vector alone shares
// no element of the other operand.
static bool isTurned(const Product &product) {
  const Plane &plane = product.planes.front();
  int64_t along = plane.tapColumns();
  if (product.groups > 1 || product.depthwise || plane.taps[along - 1].column - plane.taps[0].column != along - 1)
    return false;
  auto use = [](int64_t columns) {
    return columns * (columns <= lanes ? 0.6 : 1.0) / (ceilDiv(columns, lanes) * lanes);
  };
  return use(lineFloats(product)) > 1.15 * use(product.result.groupChannels);
}

// Columns of the product.
static int64_t columnsOf(const Product &product) {
  return isTurned(product) ? lineFloats(product) : product.result.groupChannels;
}

// The same for filters, the rows of taps one after the other.
static std::vector<RowUnit> turnedUnits(const Product &product) {
  const Plane &plane = product.planes.front();
  int64_t filters = product.result.channels, count = plane.taps.size(), along = plane.tapColumns();
  std::vector<RowUnit> units;
  for (int64_t tap = 0; tap < count; tap += along)
    for (auto [first, rows] : cutEvenly(filters, unitRows)) {
      int64_t line = (plane.taps[tap].row - plane.lowRow) * product.rowStride(plane) * product.pixelStride(plane);
      units.push_back({tap / along * filters + first, first, llvm::to_vector(llvm::seq<int64_t>(rows)), line});
    }
  return units;
}

// Rows of the result cut in units of neighbours: runs of equal steps are cut evenly, short ones put together.
static std::vector<RowUnit> unitsOf(const Product &product) {
  if (isTurned(product))
    return turnedUnits(product);
  const Plane &plane = product.planes.front();
  int64_t pixel = product.pixelStride(plane), line = product.rowStride(plane);
  SmallVector<int64_t> offsets;
  for (const Tap &tap : plane.taps)
    for (int64_t c = 0; c < product.tapDepth(); ++c)
      offsets.push_back(((tap.row - plane.lowRow) * line + tap.column - plane.lowColumn) * pixel + c);
  std::vector<RowUnit> units;
  int64_t count = offsets.size(), run = 1;
  while (run < count && offsets[run] == offsets[run - 1] + 1)
    ++run;
  int64_t step = run >= unitRows ? run : unitRows / run * run;
  for (int64_t first = 0; first < count; first += step) {
    int64_t rows = std::min(step, count - first), parts = ceilDiv(rows, unitRows);
    for (int64_t part = 0; part < parts; ++part) {
      int64_t from = first + rows * part / parts, to = first + rows * (part + 1) / parts;
      RowUnit unit{from, offsets[from], {}};
      for (int64_t row = from; row < to; ++row)
        unit.offsets.push_back(offsets[row] - offsets[from]);
      units.push_back(unit);
    }
  }
  return units;
}

KernelGradientEmitter::KernelGradientEmitter(Kernel &kernel, mt::Conv2DKernelGradientOp op)
    : kernel(kernel), emit(kernel.emit), leaves(leavesOf(kernel)), product(forwardProduct(op.getConvolution())),
      plane(product.planes.front()), turned(isTurned(product)),
      height(turned ? plane.taps.size() / plane.tapColumns() * product.result.channels
                    : plane.taps.size() * product.tapDepth()),
      units(unitsOf(product)) {
  source = kernel.argumentBuffer(cast<BlockArgument>(op.getInput()).getArgNumber());
  gradient = kernel.argumentBuffer(cast<BlockArgument>(op.getGradient()).getArgNumber());
  result = kernel.resultBuffer(0);
  SmallVector<int64_t> start, pattern, first, line;
  for (const RowUnit &unit : units) {
    line.push_back(unit.line);
    auto known = llvm::find(shapes, unit.offsets);
    pattern.push_back(known - shapes.begin());
    if (known == shapes.end())
      shapes.push_back(unit.offsets);
    start.push_back(unit.start);
    first.push_back(unit.first);
  }
  first.push_back(height);
  starts = emitTable(emit, start);
  patterns = emitTable(emit, pattern);
  firsts = emitTable(emit, first);
  tapLines = emitTable(emit, line);
}

// Adds the block's positions to the sums of all units of the part.
void KernelGradientEmitter::emitBlock(const Part &part, Value sample, Value row, Value rows, BlockColumn column,
                                      int64_t columns) {
  Type f32 = emit.getF32Type();
  const Image &image = product.source;
  int64_t pixel = product.pixelStride(plane), line = product.rowStride(plane);
  Value a = emit.address(source, f32, emit.mul(sample, image.size())),
        channel = emit.mul(part.group, image.groupChannels);
  if (product.needsPatch(plane)) {
    emitPatch(emit, product, plane, a, channel, row, column.known, rows, columns, patch);
    a = patch;
  } else {
    Value top = emit.add(emit.mul(row, plane.rowStep), plane.lowRow);
    a = emit.address(emit.address(a, f32, emit.mul(top, image.columns * image.channels)), f32,
                     emit.add(channel, emit.mul(column.value, plane.columnStep * image.channels)),
                     plane.lowColumn * image.channels);
  }
  if (product.depthwise)
    a = emit.address(a, f32, part.column);
  SmallVector<int64_t> offsets;
  for (int64_t i = 0; i < product.blockOf(plane).rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      offsets.push_back((i * plane.rowStep * line + j * plane.columnStep) * pixel);
  Value table = emitTable(emit, offsets), depth = emit.mul(rows, columns);
  int64_t filters = product.result.channels;
  // A leaf's sums start at its first position.
  Value before = emit.add(emit.add(emit.sub(sample, part.start), row), column.value),
        fresh = emit.equal(before, emit.integer(0));
  Value pixels =
      emit.add(emit.mul(emit.add(emit.mul(sample, product.result.rows), row), product.result.columns), column.value);
  Value b = emit.address(gradient, f32, emit.mul(pixels, filters));
  if (turned) {
    SmallVector<int64_t> places;
    for (size_t position = 0; position < offsets.size(); ++position)
      places.push_back(position * filters);
    TileForm form{/*masked=*/true, /*lanewise=*/false, /*scattered=*/true};
    return emitUnits(part, b, {b, emitTable(emit, places), emit.address(a, f32, part.column), table, depth, {}, fresh},
                     form);
  }
  b = emit.address(b, f32, emit.add(emit.mul(part.group, product.result.groupChannels), part.column));
  if (part.packed) {
    emitPack(emit, part.panel, b, filters, depth, part.packed);
    return emitUnits(part, a, {a, table, part.packed, emit.integer(part.panel.width()), depth, {}, fresh},
                     {/*masked=*/false, /*lanewise=*/false});
  }
  emitUnits(part, a, {a, table, b, emit.integer(filters), depth, {}, fresh}, {/*masked=*/true, product.depthwise});
}

// The tiles of all units of the part, each at its place of `a`.
void KernelGradientEmitter::emitUnits(const Part &part, Value a, const TileOperands &common, TileForm form) {
  Type f32 = emit.getF32Type();
  int64_t width = part.panel.width();
  emit.loop(part.from, part.to, 1, [&](Value unit) {
    Value start = emit.address(a, f32, loadTable(emit, starts, unit)), pattern = loadTable(emit, patterns, unit);
    Value sums = emit.address(part.sums, f32, emit.mul(emit.sub(loadTable(emit, firsts, unit), part.row), width));
    Value b = turned ? emit.address(common.b, f32, loadTable(emit, tapLines, unit)) : common.b;
    for (auto [index, shape] : llvm::enumerate(shapes))
      emit.when(emit.equal(pattern, emit.integer(index)), [&] {
        for (auto [first, count] : cutEvenly(shape.size(), offsetTileRows(emit.machine, part.panel.vectors))) {
          SmallVector<int64_t> relative;
          for (int64_t offset : ArrayRef(shape).slice(first, count))
            relative.push_back(offset - shape[first]);
          emitOffsetTile(emit, relative, part.panel, form,
                         {emit.address(start, f32, shape[first]), common.table, b, common.stride, common.depth,
                          emit.address(sums, f32, first * width), common.fresh});
        }
      });
  });
}

void KernelGradientEmitter::emitSample(const Part &part, Value sample) {
  PixelBlock size = product.blockOf(plane);
  emit.loop(emit.integer(0), emit.integer(plane.rows), size.rows, [&](Value row) {
    Value rows = emit.least(emit.integer(size.rows), emit.sub(emit.integer(plane.rows), row));
    forColumnBlocks(emit, product, plane,
                    [&](BlockColumn column, int64_t columns) { emitBlock(part, sample, row, rows, column, columns); });
  });
}

void KernelGradientEmitter::store(const Part &part, Value count) {
  Type f32 = emit.getF32Type();
  Value channel = emit.add(emit.mul(part.group, product.result.groupChannels), part.column);
  emit.loop(emit.integer(0), count, 1, [&](Value i) {
    Value from = emit.address(part.sums, f32, emit.mul(i, part.panel.width()));
    Value to =
        emit.address(emit.address(result, f32, emit.mul(emit.add(part.row, i), product.result.channels)), f32, channel);
    for (int64_t vector = 0; vector < part.panel.vectors; ++vector) {
      bool masked = vector + 1 == part.panel.vectors && part.panel.last < lanes;
      emit.storeLanes(emit.loadLanes(f32, emit.address(from, f32, vector * lanes)),
                      emit.address(to, f32, vector * lanes), masked ? emit.maskBelow(part.panel.last) : Value());
    }
  });
}

// Sums of (kh, filter) x (kw, c) to where the result has (kh, kw, c) x filter.
void KernelGradientEmitter::storeTurned(const Part &part, Value count) {
  Type f32 = emit.getF32Type();
  int64_t filters = product.result.channels, floats = lineFloats(product);
  emit.loop(emit.integer(0), count, 1, [&](Value i) {
    Value row = emit.add(part.row, i), from = emit.address(part.sums, f32, emit.mul(i, part.panel.width()));
    Value line = emit.add(emit.mul(emit.div(row, emit.integer(filters)), floats), part.column);
    Value to =
        emit.address(emit.address(result, f32, emit.mul(line, filters)), f32, emit.rem(row, emit.integer(filters)));
    emit.loop(emit.integer(0), emit.integer(part.panel.width() - lanes + part.panel.last), 1, [&](Value n) {
      emit.store(emit.load(f32, emit.address(from, f32, n)), emit.address(to, f32, emit.mul(n, filters)));
    });
  });
}

void KernelGradientEmitter::emitBundle(const Part &part) {
  Type f32 = emit.getF32Type();
  int64_t floats = bundleUnits * unitRows * part.panel.width();
  Value stack = emit.stack(f32, floats * leaves.levels), count = emit.sub(loadTable(emit, firsts, part.to), part.row);
  auto at = [&](Value level, Value index) {
    return emit.address(emit.address(stack, f32, emit.mul(level, floats)), f32, index);
  };
  auto leaf = [&](Value first, Value end) {
    Part samples = part;
    samples.start = first;
    emit.loop(first, end, 1, [&](Value sample) { emitSample(samples, sample); });
  };
  auto combine = [&](Value level) {
    forVectors(emit, part.panel, count, [&](Value index) {
      Value place = emit.address(part.sums, f32, index);
      emit.storeLanes(arith::AddFOp::create(emit, emit.loadLanes(f32, at(level, index)), emit.loadLanes(f32, place)),
                      place);
    });
  };
  auto push = [&](Value level) {
    forVectors(emit, part.panel, count, [&](Value index) {
      emit.storeLanes(emit.loadLanes(f32, emit.address(part.sums, f32, index)), at(level, index));
    });
  };
  emitTreeInMemory(emit, leaves, leaf, combine, push);
  turned ? storeTurned(part, count) : store(part, count);
}

// Grid tiles: groups, then wide panels, then units.
LogicalResult KernelGradientEmitter::run() {
  Type f32 = emit.getF32Type();
  PixelBlock size = product.blockOf(plane);
  if (product.needsPatch(plane))
    patch =
        emit.stack(f32, plane.reachRows(size.rows) * plane.reachColumns(size.columns) * product.source.groupChannels);
  int64_t columns = columnsOf(product), wides = ceilDiv(columns, panelColumns), count = units.size();
  Value first = emit.div(kernel.tileBegin, emit.integer(count)), last = emit.ceilDiv(kernel.tileEnd, count);
  emit.loop(first, last, 1, [&](Value wide) {
    Value offset = emit.mul(wide, count), group = emit.div(wide, emit.integer(wides));
    Value from = emit.most(emit.sub(kernel.tileBegin, offset), emit.integer(0));
    Value to = emit.least(emit.sub(kernel.tileEnd, offset), emit.integer(count));
    Value column = emit.mul(emit.rem(wide, emit.integer(wides)), panelColumns);
    forPanels(emit, columns, column, emit.add(column, panelColumns), [&](Value panelColumn, Panel panel) {
      Value sums = emit.stack(f32, bundleUnits * unitRows * panel.width()), packed;
      // Positions far apart share sets of the first cache, and each is read for every unit.
      if (!turned && !product.depthwise && product.result.channels > panel.width())
        packed = emit.stack(f32, blockPositions * panel.width());
      emit.loop(from, to, bundleUnits, [&](Value unit) {
        Value end = emit.least(emit.add(unit, bundleUnits), to);
        emitBundle({group, panelColumn, panel, unit, end, loadTable(emit, firsts, unit), sums, packed, {}});
      });
    });
  });
  return success();
}

static mt::Conv2DKernelGradientOp gradientOf(plan::KernelOp op) {
  return op.getBody().front().getTerminator()->getOperand(0).getDefiningOp<mt::Conv2DKernelGradientOp>();
}

Grid mtc::convTreeGrid(plan::KernelOp op) {
  mt::Conv2DKernelGradientOp gradient = gradientOf(op);
  if (!gradient)
    return {};
  Product product = forwardProduct(gradient.getConvolution());
  return {0, product.groups * ceilDiv(columnsOf(product), panelColumns) * static_cast<int64_t>(unitsOf(product).size()),
          0};
}

LogicalResult mtc::emitConvTree(Kernel &kernel) {
  mt::Conv2DKernelGradientOp op = gradientOf(kernel.op);
  if (!op || !isa<BlockArgument>(op.getInput()) || !isa<BlockArgument>(op.getGradient()))
    return kernel.op.emitError("expected one mt.conv2d_kernel_gradient of two operands in a kernel of kind conv_tree");
  return KernelGradientEmitter(kernel, op).run();
}
