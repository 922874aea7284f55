// SPDX-License-Identifier: Apache-2.0
//
// Sums of rows by id over the batch. A tile of the grid is a block of the table: some of its rows and columns. It
// compares all ids with the rows of its block, 16 at a time, and adds to the rows that are selected; the other rows
// become zero. Only the shards that select a row are added along its tree: a shard's sum is never -0, so the zero of
// another shard would add nothing.
#include "compiler/codegen/common/Rules.h"
#include "compiler/codegen/common/Tree.h"
#include "compiler/codegen/cpu/Kernels.h"

using namespace mlir;
using namespace mtc;

// Largest number of floats and of columns of a block; smallest number of tiles, so that all threads have work.
static constexpr int64_t blockFloats = 1 << 15, blockColumns = 256, minTiles = 32;

namespace {
struct ScatterShape {
  int64_t entries, width; // of the table
  int64_t ids;            // per sample
  int64_t chunks;         // chunks of a row, one per block
  int64_t columns;        // of a chunk
  int64_t blocks;         // blocks of all rows: a power of two
  int64_t rows;           // of a block

  explicit ScatterShape(mt::ScatterAddOp op)
      : entries(op.getType().getDimSize(0)), width(innerCount(op.getResult()) / entries), ids(innerCount(op.getIds())),
        chunks(std::max<int64_t>(1, ceilDiv(width, blockColumns))),
        columns(llvm::alignTo(ceilDiv(width, chunks), lanes)) {
    int64_t wanted = std::max(ceilDiv(minTiles, chunks), ceilDiv(entries * columns, blockFloats));
    blocks = llvm::PowerOf2Ceil(std::min(entries, wanted));
    rows = ceilDiv(entries, blocks);
  }
};

// Emits the kernel.
class Scatter {
public:
  explicit Scatter(Kernel &kernel, mt::ScatterAddOp op);
  void tile(Value tile);

private:
  using Lines = llvm::function_ref<void(Value column, Value mask)>;
  Value stateOf(Value states, Value row) { return emit.address(states, i32, row); }
  Value load(Value state) { return arith::ExtSIOp::create(emit, emit.getI64Type(), emit.load(i32, state)); }
  void store(Value number, Value state) { emit.store(arith::TruncIOp::create(emit, i32, number), state); }
  Value result(Value row) {
    return emit.address(emit.address(table, f32, emit.mul(emit.add(firstRow, row), shape.width)), f32, firstColumn);
  }
  Value left(Value row, Value level) {
    Value line = emit.add(emit.mul(level, shape.rows), row);
    return emit.address(stack, f32, emit.mul(line, shape.columns));
  }
  void forLine(Lines each);
  void forBits(Value bits, llvm::function_ref<void(Value bit)> each);
  Value namedFrom(Value index, Value valid);
  void take(Value index);
  void begin(Value row, Value shard, Value last);
  void combine(Value row, Value levels);
  void finish(Value row);

  Emitter &emit;
  ScatterShape shape;
  Shards shards;
  Type f32, i32;
  Value ids, updates, table;
  Value allIds, shardIds;               // ids of the device, ids of a shard
  Value lasts;                          // the last shard that selected each row, whose sum is in the table; -1: none
  Value waiting, stack;                 // levels of the tree with a left sibling, as bits for each row; the siblings
  Value firstRow, firstColumn, columns; // of the tile
  Value low, above;                     // ids of the tile's rows: low + [0, above], as unsigned i32
};
} // namespace

static mt::ScatterAddOp scatterOf(plan::KernelOp op) {
  return op.getBody().front().getTerminator()->getOperand(0).getDefiningOp<mt::ScatterAddOp>();
}

Scatter::Scatter(Kernel &kernel, mt::ScatterAddOp op)
    : emit(kernel.emit), shape(op), shards(shardsOf(kernel)), f32(emit.realType()), i32(emit.getI32Type()),
      ids(kernel.argumentBuffer(cast<BlockArgument>(op.getIds()).getArgNumber())),
      updates(kernel.argumentBuffer(cast<BlockArgument>(op.getUpdates()).getArgNumber())),
      table(kernel.resultBuffer(0)), allIds(emit.mul(shards.rows, shape.ids)),
      shardIds(emit.mul(shards.size, shape.ids)), lasts(emit.array(i32, shape.rows)),
      waiting(emit.array(i32, shape.rows)),
      stack(emit.array(f32, shape.rows * shape.columns * std::max<int64_t>(1, shards.levels - 1))) {}

// Calls `each` for each vector of a row of the tile.
void Scatter::forLine(Lines each) {
  bool whole = shape.width == shape.columns * shape.chunks;
  emit.loop(emit.integer(0), columns, lanes,
            [&](Value j) { each(j, whole ? Value() : emit.maskBelow(emit.sub(columns, j))); });
}

// Calls `each` for each set bit of `bits`, an i64, from the lowest.
void Scatter::forBits(Value bits, llvm::function_ref<void(Value)> each) {
  Value count = LLVM::CtPopOp::create(emit, emit.getI64Type(), bits);
  emit.loop(emit.integer(0), count, 1, bits, [&](Value, ValueRange rest) {
    each(LLVM::CountTrailingZerosOp::create(emit, emit.getI64Type(), rest[0], /*is_zero_poison=*/true));
    return Emitter::Values{arith::AndIOp::create(emit, rest[0], emit.add(rest[0], -1))};
  });
}

// Compares 16 ids with the rows of the tile: bit i of the result, an i64, is set if `valid` (null: all) selects id i
// and the id selects a row of the tile.
Value Scatter::namedFrom(Value index, Value valid) {
  Value from = arith::SubIOp::create(emit, emit.loadLanes(i32, emit.address(ids, i32, index), valid), emit.splat(low));
  Value named = arith::CmpIOp::create(emit, arith::CmpIPredicate::ule, from, emit.splat(above));
  if (valid)
    named = arith::AndIOp::create(emit, named, valid);
  Value bits = LLVM::BitcastOp::create(emit, emit.getIntegerType(lanes), named);
  return arith::ExtUIOp::create(emit, emit.getI64Type(), bits);
}

// row = its left siblings of `levels`, from the lowest level, + row.
void Scatter::combine(Value row, Value levels) {
  Value line = result(row);
  forBits(levels, [&](Value level) {
    Value sibling = left(row, level);
    forLine([&](Value j, Value mask) {
      Value sum = emit.address(line, f32, j);
      Value added = arith::AddFOp::create(emit, emit.loadLanes(f32, emit.address(sibling, f32, j)),
                                          emit.loadLanes(f32, sum, mask));
      emit.storeLanes(added, sum, mask);
    });
  });
}

// Starts the sum of `shard` for this row, after the sum of `last`. The paths of these two shards join above the level
// `top`; the nodes of `last` below are complete.
void Scatter::begin(Value row, Value shard, Value last) {
  Value difference = arith::XOrIOp::create(emit, last, shard);
  Value zeros = LLVM::CountLeadingZerosOp::create(emit, emit.getI64Type(), difference, /*is_zero_poison=*/true);
  Value top = emit.sub(emit.integer(63), zeros), topBit = arith::ShLIOp::create(emit, emit.integer(1), top);
  Value levels = load(stateOf(waiting, row));
  Value complete = arith::AndIOp::create(emit, levels, emit.add(topBit, -1));
  combine(row, complete);
  Value from = result(row), to = left(row, top);
  forLine([&](Value j, Value mask) {
    emit.storeLanes(emit.loadLanes(f32, emit.address(from, f32, j), mask), emit.address(to, f32, j));
  });
  store(emit.add(emit.sub(levels, complete), topBit), stateOf(waiting, row));
}

// Adds the row of updates at `index` to the row of the table that its id selects.
void Scatter::take(Value index) {
  Value id = entryOf(emit, emit.load(i32, emit.address(ids, i32, index)), shape.entries);
  Value row = emit.sub(id, firstRow), shard = emit.div(index, shardIds), last = load(stateOf(lasts, row));
  Value from = emit.address(emit.address(updates, f32, emit.mul(index, shape.width)), f32, firstColumn);
  Value to = result(row);
  auto add = [&](bool first) {
    forLine([&](Value j, Value mask) {
      Value sum = emit.address(to, f32, j);
      Value before = first ? emit.zeros(emit.vectorOf(f32)) : emit.loadLanes(f32, sum, mask);
      emit.storeLanes(arith::AddFOp::create(emit, before, emit.loadLanes(f32, emit.address(from, f32, j), mask)), sum,
                      mask);
    });
  };
  emit.when(
      emit.equal(last, shard), [&] { add(/*first=*/false); },
      [&] {
        emit.when(emit.less(emit.integer(-1), last), [&] { begin(row, shard, last); });
        add(/*first=*/true);
        store(shard, stateOf(lasts, row));
      });
}

void Scatter::finish(Value row) {
  Value line = result(row);
  emit.when(
      emit.less(load(stateOf(lasts, row)), emit.integer(0)),
      [&] {
        forLine([&](Value j, Value mask) {
          emit.storeLanes(emit.zeros(emit.vectorOf(f32)), emit.address(line, f32, j), mask);
        });
      },
      [&] { combine(row, load(stateOf(waiting, row))); });
}

// Adjacent tiles have distant blocks: ids are often small, and a thread has adjacent tiles.
void Scatter::tile(Value tile) {
  Value number = emit.mul(emit.div(tile, emit.integer(shape.chunks)), 0x9e3779b1);
  firstRow = emit.mul(emit.rem(number, emit.integer(shape.blocks)), shape.rows);
  firstColumn = emit.mul(emit.rem(tile, emit.integer(shape.chunks)), shape.columns);
  columns = emit.min(emit.integer(shape.columns), emit.sub(emit.integer(shape.width), firstColumn));
  Value end = emit.min(emit.add(firstRow, shape.rows), emit.integer(shape.entries));
  auto narrow = [&](Value number) -> Value { return arith::TruncIOp::create(emit, i32, number); };
  auto choose = [&](Value condition, int64_t edge, Value inside) -> Value {
    return arith::SelectOp::create(emit, condition, emit.integer(edge), inside);
  };
  // Ids out of range select the first or the last row.
  Value lowest = choose(emit.equal(firstRow, emit.integer(0)), INT32_MIN, firstRow);
  Value highest = choose(emit.equal(end, emit.integer(shape.entries)), INT32_MAX, emit.add(end, -1));
  low = narrow(lowest);
  above = narrow(emit.sub(highest, lowest));
  emit.when(emit.less(firstRow, end), [&] {
    emit.loop(emit.integer(0), emit.sub(end, firstRow), lanes, [&](Value row) {
      Value zeros = emit.zeros(emit.vectorOf(i32));
      emit.storeLanes(emit.splat(narrow(emit.integer(-1))), stateOf(lasts, row));
      emit.storeLanes(zeros, stateOf(waiting, row));
    });
    emit.loop(emit.integer(0), allIds, lanes, [&](Value index) {
      Value remaining = emit.sub(allIds, index);
      auto named = scf::IfOp::create(emit, emit.getI64Type(), emit.less(remaining, emit.integer(lanes)), true);
      {
        OpBuilder::InsertionGuard guard(emit);
        emit.setInsertionPointToEnd(named.thenBlock());
        scf::YieldOp::create(emit, namedFrom(index, emit.maskBelow(remaining)));
        emit.setInsertionPointToEnd(named.elseBlock());
        scf::YieldOp::create(emit, namedFrom(index, Value()));
      }
      forBits(named.getResult(0), [&](Value bit) { take(emit.add(index, bit)); });
    });
    emit.loop(emit.integer(0), emit.sub(end, firstRow), 1, [&](Value row) { finish(row); });
  });
}

Grid mtc::scatterAddGrid(plan::KernelOp op) {
  ScatterShape shape(scatterOf(op));
  return {0, shape.blocks * shape.chunks, 0};
}

LogicalResult mtc::emitScatterAdd(Kernel &kernel) {
  Scatter scatter(kernel, scatterOf(kernel.op));
  kernel.emit.loop(kernel.tileBegin, kernel.tileEnd, 1, [&](Value tile) { scatter.tile(tile); });
  return success();
}
