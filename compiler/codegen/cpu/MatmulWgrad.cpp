// SPDX-License-Identifier: Apache-2.0
//
// Weight gradients: (? x M)^T . (? x N), summed over the samples along the tree. A panel of N is packed for as many
// full shards as fit, and each tile of the result sums these shards in registers; its stack of left siblings stays in
// memory for the next part. If N is small, the transposed result is computed, with vectors along M, and transposed when
// it is stored; the chain of an element is the same. Samples of several rows are treated as that many samples, in
// order. The terms of a product of bf16 operands are pairs of samples of a shard (Terms.h); both sides are packed in
// pairs.
#include "compiler/codegen/common/Tree.h"
#include "compiler/codegen/cpu/Kernels.h"
#include "compiler/codegen/cpu/Tile.h"
#include "compiler/codegen/cpu/WholeTree.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/KernelKinds.h"

using namespace mlir;
using namespace mtc;

// Number of samples of a packed panel: 16 KiB. With 32 KiB, the rows of the left side would evict it from the L1 cache.
static constexpr int64_t packedSamples = 64;
// Number of rows of the result that share a packed panel: for shards that fit in one panel, and on CPUs with few
// registers, and for longer shards. With more rows a panel is packed less often, but the left side of a short shard is
// farther away when the next panel needs it, and the sums of a long shard are.
static constexpr int64_t shortBlock = 96, longBlock = 384;
// The same if the left side is packed: 16 KiB of a packed panel and 256 KiB of the left side, which stay in the caches,
// and columns that share a copy of the left side.
static constexpr int64_t packedLeftSamples = 256, packedLeftBlock = 256, packedLeftColumns = 4 * panelColumns;
// Number of samples of a shard from which a higher tile gains more than two shards in registers: with 32 vectors, and
// with fewer.
static constexpr int64_t longShard = 16, longShardOfFew = 10;

namespace {
class TreeEmitter {
public:
  // A side of the product: its buffer, element type, and the stride of samples in elements.
  struct Side {
    Value buffer;
    Type element;
    int64_t stride;
  };
  // Position of the result in the kernel's result: floats before it, and the stride of its rows.
  struct Position {
    int64_t first, stride;
  };
  TreeEmitter(Kernel &kernel, Side left, Side right, Position position, int64_t height, int64_t columns, int64_t lines,
              bool transposed)
      : kernel(kernel), emit(kernel.emit), shards(shardsOf(kernel)), left(left.buffer), right(right.buffer),
        leftElement(left.element), rightElement(right.element),
        terms(termsOf(kernel.emit, left.element, right.element)), leftStride(left.stride), rightStride(right.stride),
        result(kernel.resultBuffer(0)), resultStride(position.stride), shardRows(kernel.shardRows * lines),
        height(height), columns(columns), transposed(transposed),
        samplesAtOnce(packsTiles() ? packedLeftSamples : packedSamples * termsOfUnit(terms)), blockRows(rowsOfBlock()) {
    shards.rows = emit.mul(shards.rows, lines);
    shards.size = emit.mul(shards.size, lines);
    if (position.first)
      result = emit.address(result, emit.realType(), position.first);
  }
  void run();

private:
  Kernel &kernel;
  Emitter &emit;
  Shards shards;
  Value left, right; // buffers
  Type leftElement, rightElement;
  Terms terms;
  int64_t leftStride, rightStride;
  Value result;
  int64_t resultStride;
  Value copied; // a copy of a block of the left side
  int64_t shardRows;
  int64_t height, columns; // of the computed matrix
  bool transposed;         // the result is the transposed computed matrix
  int64_t samplesAtOnce;   // of a packed panel
  int64_t blockRows;

  // Whether the left side of long shards is packed for tiles, a part of a shard at a time.
  bool packsTiles() const {
    return packsLeft(emit.vectors) && terms == Terms::single && !Emitter::isHalf(leftElement) && !kernel.fast &&
           shardRows > packedSamples && columns >= panelColumns;
  }
  int64_t rowsOfBlock() const {
    if (packsTiles())
      return std::min(packedLeftBlock, height);
    return emit.vectors.isWide() && (kernel.fast || shardRows > samplesAtOnce) ? longBlock : shortBlock;
  }
  // Columns that are computed together.
  int64_t columnsAtOnce() const { return packsTiles() ? packedLeftColumns : panelColumns; }
  // Whether no pair of adjacent samples has samples of two shards, wherever a shard starts.
  bool hasPairsOfShards() const { return kernel.fast || terms == Terms::single || shardRows % 2 == 0; }
  // Packed rows of a shard, and of `samples` samples of which the first one starts a shard.
  int64_t shardUnits() const { return unitsOf(terms, shardRows); }
  Value unitsOfSamples(Value samples);
  void forShards(Value samples, llvm::function_ref<void(Value first, Value count, Value unit)> body);
  std::pair<Value, Value> leftBlock(Value sample, Value part, Value row, Value count);
  bool hasShortShards() const { return shardRows < (emit.vectors.isWide() ? longShard : longShardOfFew); }
  int64_t innerLevels() const;
  int64_t allSamples() const { return shardRows << (shards.levels - 1); }
  int64_t allUnits() const { return shardUnits() << (shards.levels - 1); }
  bool isSmall() const;
  // Upper bound of the columns that are computed together.
  int64_t wideColumns() const { return std::min<int64_t>(columnsAtOnce(), llvm::alignTo(columns, lanes)); }
  // Columns [first, end) that are computed together; `end` may be rounded up.
  struct Columns {
    Value first, end;
  };
  void forPanelsOf(const Columns &wide, llvm::function_ref<void(Value column, Panel panel, Value offset)> body);
  struct Target {
    Value first, step;
    bool direct; // in the result
  };
  Target targetOf(Value column, Panel panel, Value offset, Value row, Value sums);
  void emitWide(const Columns &wide, Value row, Value count);
  void emitWhole(const Columns &wide, Value row, Value count, Value sums);
  void emitParts(const Columns &wide, Value row, Value count, Value sums);
  void emitLongShards(const Columns &wide, Value row, Value count, Value sums);
  void pack(Panel panel, Value column, Value sample, Value part, Value packed);
  void copyRows(bool intoResult, Value column, Panel panel, Value row, Value sums, Value count);
};
} // namespace

// Copies rows [row, row + count) of the result: from sums into the result, or from the result into sums.
void TreeEmitter::copyRows(bool intoResult, Value column, Panel panel, Value row, Value sums, Value count) {
  Type f32 = emit.realType();
  emit.loop(emit.integer(0), count, 1, [&](Value i) {
    Value inSums = emit.address(sums, f32, emit.mul(i, panel.width())), line = emit.add(row, i);
    if (transposed) {
      Value inResult = emit.address(emit.address(result, f32, emit.mul(column, resultStride)), f32, line);
      emit.loop(emit.integer(0), emit.integer(panel.width() - lanes + panel.last), 1, [&](Value j) {
        Value from = emit.address(inSums, f32, j), to = emit.address(inResult, f32, emit.mul(j, resultStride));
        if (!intoResult)
          std::swap(from, to);
        emit.store(emit.load(f32, from), to);
      });
      return;
    }
    Value inResult = emit.address(emit.address(result, f32, emit.mul(line, resultStride)), f32, column);
    for (int64_t vector = 0; vector < panel.vectors; ++vector) {
      bool masked = vector + 1 == panel.vectors && panel.last < lanes;
      Value from = emit.address(inSums, f32, vector * lanes), to = emit.address(inResult, f32, vector * lanes);
      Value mask = masked ? emit.maskBelow(panel.last) : Value(); // of the result; sums have room for whole vectors
      if (intoResult)
        emit.storeLanes(emit.loadLanes(f32, from), to, mask);
      else
        emit.storeLanes(emit.loadLanes(f32, to, mask), from);
    }
  });
}

Value TreeEmitter::unitsOfSamples(Value samples) {
  if (hasPairsOfShards())
    return unitsOf(emit, terms, samples);
  Value size = emit.integer(shardRows), whole = emit.mul(emit.div(samples, size), shardUnits());
  return emit.add(whole, unitsOf(emit, terms, emit.rem(samples, size)));
}

// Calls `body` for parts of `samples` samples that have no pair of samples of two shards, with the first sample, the
// number of samples and the first packed row of each.
void TreeEmitter::forShards(Value samples, llvm::function_ref<void(Value, Value, Value)> body) {
  Value none = emit.integer(0);
  if (hasPairsOfShards())
    return body(none, samples, none);
  emit.loop(none, samples, shardRows, [&](Value first) {
    body(first, emit.min(emit.integer(shardRows), emit.sub(samples, first)), unitsOfSamples(first));
  });
}

void TreeEmitter::pack(Panel panel, Value column, Value sample, Value part, Value packed) {
  forShards(part, [&](Value first, Value count, Value unit) {
    Value b = emit.address(right, rightElement, emit.mul(emit.add(sample, first), rightStride));
    emitPack(emit, panel, emit.address(b, rightElement, column), rightStride, count,
             emit.address(packed, emit.realType(), emit.mul(unit, panel.width())), rightElement, terms);
  });
}

// Address of `count` rows from `row` on of the left side, for `part` samples, and the stride of samples in floats. If
// the samples share few sets of the L1 cache they would evict each other, so they are copied; samples of 16 bits are
// copied too. If the left side is packed for tiles, the stride is that of its rows.
std::pair<Value, Value> TreeEmitter::leftBlock(Value sample, Value part, Value row, Value count) {
  Type f32 = emit.realType();
  Type element = leftElement;
  Value a = emit.address(emit.address(left, element, emit.mul(sample, leftStride)), element, row);
  // samples with a stride that is a multiple of this one share sets with every fourth other sample
  constexpr int64_t setFloats = 256;
  if (packsTiles()) {
    int64_t step = packedLeftStride(samplesAtOnce);
    if (!copied)
      copied = emit.array(f32, packedLeftFloats(blockRows, step));
    emitPackLeft(emit, Layout::columns, a, leftStride, part, copied, step, count);
    return {copied, emit.integer(step)};
  }
  if (leftStride % setFloats != 0 && !Emitter::isHalf(element))
    return {a, emit.integer(leftStride)};
  if (!copied)
    copied = emit.array(f32, packedSamples * blockRows);
  std::pair<Value, Value> block = {copied, emit.integer(blockRows)};
  if (terms != Terms::single) {
    forShards(part, [&](Value first, Value samples, Value unit) {
      packRows(emit, terms, TermSide::left, emit.address(a, element, emit.mul(first, leftStride)), leftStride, samples,
               count, emit.address(copied, f32, emit.mul(unit, blockRows)), blockRows);
    });
    return block;
  }
  Value whole = emit.mul(emit.div(count, emit.integer(lanes)), lanes), rest = emit.maskBelow(emit.sub(count, whole));
  emit.loop(emit.integer(0), part, 1, [&](Value i) {
    Value from = emit.address(a, element, emit.mul(i, leftStride)),
          to = emit.address(copied, f32, emit.mul(i, blockRows));
    emit.loop(emit.integer(0), whole, lanes, [&](Value k) {
      emit.storeLanes(emit.loadLanes(element, emit.address(from, element, k)), emit.address(to, f32, k));
    });
    emit.when(emit.less(whole, count), [&] {
      emit.storeLanes(emit.loadLanes(element, emit.address(from, element, whole), rest), emit.address(to, f32, whole),
                      rest);
    });
  });
  return block;
}

// Number of tree levels whose sums stay in registers: one, a pair of shards, if two shards fit in a packed panel. Two
// levels would halve the rows of a tile. Swapped terms are added in a mode of the CPU that LLVM does not know, so their
// sums are added from memory.
int64_t TreeEmitter::innerLevels() const { return !kernel.fast && terms != Terms::swapped && hasShortShards() ? 1 : 0; }

// Whether all samples of the tree fit in a packed panel, so that their products are unrolled.
bool TreeEmitter::isSmall() const {
  return !kernel.fast && (emit.vectors.isWide() || hasShortShards()) && terms != Terms::swapped && shards.levels > 1 &&
         allUnits() <= packedSamples;
}

// Calls `body` for the panels of columns that are computed together, with the distance of each from the first one.
void TreeEmitter::forPanelsOf(const Columns &wide,
                              llvm::function_ref<void(Value column, Panel panel, Value offset)> body) {
  forPanels(emit, columns, wide.first, wide.end,
            [&](Value at, Panel panel) { body(at, panel, emit.sub(at, wide.first)); });
}

// Where the sums of a panel go: the result, or `sums`, from where they are stored.
TreeEmitter::Target TreeEmitter::targetOf(Value column, Panel panel, Value offset, Value row, Value sums) {
  Type f32 = emit.realType();
  if (panel.last == lanes && !transposed)
    return {emit.address(emit.address(result, f32, emit.mul(row, resultStride)), f32, column),
            emit.integer(resultStride), true};
  return {emit.address(sums, f32, emit.mul(offset, blockRows)), emit.integer(panel.width()), false};
}

// Does the same as emitParts, for a batch without missing samples for whose tree isSmall() holds.
void TreeEmitter::emitWhole(const Columns &wide, Value row, Value count, Value sums) {
  Type f32 = emit.realType();
  auto [a, stride] = leftBlock(emit.integer(0), shards.rows, row, count);
  forPanelsOf(wide, [&, a = a, stride = stride](Value at, Panel panel, Value offset) {
    Value packed = emit.array(f32, packedSamples * panel.width());
    pack(panel, at, emit.integer(0), shards.rows, packed);
    int64_t height = shards.levels - 1, most = emit.vectors.tileRows(panel.vectors, 2);
    Value slots = emit.array(f32, height * most * panel.width());
    Target to = targetOf(at, panel, offset, row, sums);
    forTiles(emit, most, count, [&](Value tile, Value tiles, int64_t rows) {
      emit.call(wholeTreeFunction(emit, terms, rows, panel.vectors, height, shardUnits()),
                {emit.address(a, f32, tile), stride, packed, emit.address(to.first, f32, emit.mul(tile, to.step)),
                 to.step, tiles, slots});
    });
  });
}

// Emits `count` rows from `row` on, for shards that fit in a packed panel.
void TreeEmitter::emitParts(const Columns &wide, Value row, Value count, Value sums) {
  Type f32 = emit.realType();
  Value stack = emit.array(f32, blockRows * wideColumns() * shards.levels);
  int64_t inner = innerLevels(), unit = int64_t(1) << inner;
  // In fast mode the single shard fits.
  int64_t group = kernel.fast ? 1 : packedSamples / shardUnits() / unit * unit;
  Value size = kernel.fast ? unitsOf(emit, terms, shards.size) : emit.integer(shardUnits());
  emit.loop(emit.integer(0), shards.count, group, [&](Value first) {
    Value sample = emit.mul(first, shards.size);
    Value part = emit.min(emit.mul(shards.size, group), emit.sub(shards.rows, sample));
    Value mine = emit.min(emit.integer(group), emit.sub(shards.count, first));
    auto [a, stride] = leftBlock(sample, part, row, count);
    forPanelsOf(wide, [&, a = a, stride = stride](Value at, Panel panel, Value offset) {
      Value packed = emit.array(f32, packedSamples * panel.width());
      pack(panel, at, sample, part, packed);
      Value nodes = emit.address(stack, f32, emit.mul(offset, blockRows * shards.levels));
      Target to = targetOf(at, panel, offset, row, sums);
      forTiles(emit, emit.vectors.tileRows(panel.vectors, inner + 1), count,
               [&](Value tile, Value tiles, int64_t rows) {
                 emit.call(treeFunction(emit, terms, rows, panel.vectors, shards.levels, inner),
                           {emit.address(a, f32, tile), stride, packed, unitsOfSamples(part), size, mine, first,
                            shards.count, emit.address(nodes, f32, emit.mul(tile, panel.width() * shards.levels)),
                            emit.address(to.first, f32, emit.mul(tile, to.step)), to.step, tiles});
               });
    });
  });
}

// Emits shards that are longer than a packed panel, whose sums are in memory.
void TreeEmitter::emitLongShards(const Columns &wide, Value row, Value count, Value sums) {
  Type f32 = emit.realType();
  int64_t floats = blockRows * wideColumns();
  Value stack = emit.array(f32, floats * shards.levels);
  // Calls `each` for every vector of the sums, with its index.
  auto forSums = [&](llvm::function_ref<void(Value index)> each) {
    forPanelsOf(wide, [&](Value, Panel panel, Value offset) {
      Value first = emit.mul(offset, blockRows);
      forVectors(emit, panel, count, [&](Value index) { each(emit.add(first, index)); });
    });
  };
  auto at = [&](Value level, Value index) {
    return emit.address(emit.address(stack, f32, emit.mul(level, floats)), f32, index);
  };
  auto shard = [&](Value first, Value end) {
    forSums([&](Value index) { emit.storeLanes(emit.zeros(emit.vectorOf(f32)), emit.address(sums, f32, index)); });
    if (kernel.op.getContinues())
      emit.when(kernel.continues(), [&] {
        forPanelsOf(wide, [&](Value at, Panel panel, Value offset) {
          copyRows(false, at, panel, row, emit.address(sums, f32, emit.mul(offset, blockRows)), count);
        });
      });
    emit.loop(first, end, samplesAtOnce, [&](Value sample) {
      Value part = emit.min(emit.integer(samplesAtOnce), emit.sub(end, sample));
      auto [a, stride] = leftBlock(sample, part, row, count);
      forPanelsOf(wide, [&, a = a, stride = stride](Value panelColumn, Panel panel, Value offset) {
        Value packed = emit.array(f32, samplesAtOnce / termsOfUnit(terms) * panel.width());
        pack(panel, panelColumn, sample, part, packed);
        emitProduct(emit, packsTiles() ? Layout::tiles : Layout::columns, panel, a, stride, packed,
                    unitsOf(emit, terms, part), emit.address(sums, f32, emit.mul(offset, blockRows)), count,
                    Sums::there, terms);
      });
    });
  };
  auto combine = [&](Value level) {
    forSums([&](Value index) {
      Value address = emit.address(sums, f32, index);
      Value sum = arith::AddFOp::create(emit, emit.loadLanes(f32, at(level, index)), emit.loadLanes(f32, address));
      emit.storeLanes(sum, address);
    });
  };
  auto push = [&](Value level) {
    forSums(
        [&](Value index) { emit.storeLanes(emit.loadLanes(f32, emit.address(sums, f32, index)), at(level, index)); });
  };
  emitTreeInMemory(emit, shards, shard, combine, push);
}

// Emits `count` rows of the computed matrix, for one wide panel of its columns.
void TreeEmitter::emitWide(const Columns &wide, Value row, Value count) {
  Type f32 = emit.realType();
  Value sums = emit.array(f32, blockRows * wideColumns());
  auto storeSums = [&](bool all) {
    forPanelsOf(wide, [&](Value at, Panel panel, Value offset) {
      Target from = targetOf(at, panel, offset, row, sums);
      if (all || !from.direct)
        copyRows(true, at, panel, row, emit.address(sums, f32, emit.mul(offset, blockRows)), count);
    });
  };
  auto inRegisters = [&] {
    auto parts = [&] { emitParts(wide, row, count, sums); };
    // A special case for narrow panels is not worth its code size.
    if (isSmall() && columns % panelColumns == 0)
      emit.when(emit.equal(shards.rows, emit.integer(allSamples())), [&] { emitWhole(wide, row, count, sums); }, parts);
    else
      parts();
    storeSums(false);
  };
  auto longShards = [&] {
    emitLongShards(wide, row, count, sums);
    storeSums(true);
  };
  if (!kernel.fast)
    return packsTiles() || shardRows > samplesAtOnce ? longShards() : inRegisters();
  emit.when(emit.less(shards.rows, emit.integer(samplesAtOnce + 1)), inRegisters, longShards);
}

// Tiles of the grid are numbered along the rows of the result. A thread's tiles are the rest of a row of tiles, full
// rows, and the start of a row. For full rows, a block of rows is combined with all panels while its part of the left
// side is in the cache. A thread's tiles are contiguous in the result, and the same thread updates most of that part of
// the variable.
void TreeEmitter::run() {
  Value rows = emit.integer(height), none = emit.integer(0);
  int64_t panels = (columns + panelColumns - 1) / panelColumns;
  Value all = emit.integer(panels);
  Value firstRow = emit.div(kernel.tileBegin, all), firstPanel = emit.rem(kernel.tileBegin, all);
  Value lastRow = emit.div(kernel.tileEnd, all), lastPanel = emit.rem(kernel.tileEnd, all);
  Value whole = emit.ceilDiv(kernel.tileBegin, panels);
  auto choose = [&](Value part, Value rest, Value middle, Value start) -> Value {
    Value later = arith::SelectOp::create(emit, emit.equal(part, emit.integer(1)), middle, start);
    return arith::SelectOp::create(emit, emit.equal(part, none), rest, later);
  };
  Value restEnd = arith::SelectOp::create(emit, emit.equal(firstRow, lastRow), lastPanel, all);
  emit.loop(none, emit.integer(3), 1, [&](Value part) {
    Value from = emit.mul(choose(part, firstRow, whole, emit.max(lastRow, whole)), treeRows);
    Value to = emit.min(emit.mul(choose(part, whole, lastRow, emit.add(lastRow, 1)), treeRows), rows);
    Value fromColumn = emit.mul(choose(part, firstPanel, none, none), panelColumns);
    Value toColumn = emit.mul(choose(part, restEnd, all, lastPanel), panelColumns);
    emit.loop(from, to, blockRows, [&](Value row) {
      Value count = emit.min(emit.integer(blockRows), emit.sub(to, row));
      emit.loop(fromColumn, emit.min(toColumn, emit.integer(columns)), columnsAtOnce(), [&](Value column) {
        Value end = emit.add(column, columnsAtOnce());
        emitWide({column, packsTiles() ? emit.min(end, toColumn) : end}, row, count);
      });
    });
  });
}

bool mtc::isTransposed(int64_t height, int64_t columns) { return columns <= lanes && height > columns; }

LogicalResult mtc::emitMatmulWgrad(Kernel &kernel) {
  mt::BatchProduct batch = mt::batchProductOf(kernel.yields()[0]);
  mt::MatmulOp product = batch.product;
  auto sideOf = [&](Value value) {
    Value whole = mt::holderOf(value);
    return TreeEmitter::Side{kernel.argumentBuffer(cast<BlockArgument>(whole).getArgNumber()), elementOf(whole),
                             tensorOf(whole).getShape().back()};
  };
  TreeEmitter::Side left = sideOf(product.getLhs()), right = sideOf(product.getRhs());
  int64_t height = tensorOf(product.getLhs()).getShape().back(), columns = tensorOf(product.getRhs()).getShape().back();
  bool transposed = isTransposed(height, columns);
  if (transposed) {
    std::swap(left, right);
    std::swap(height, columns);
  }
  TreeEmitter(kernel, left, right, {batch.first, batch.stride}, height, columns, linesOf(product.getLhs()), transposed)
      .run();
  return success();
}
