// SPDX-License-Identifier: Apache-2.0
//
// Sums of operands over the samples. A shard is divided into slices of a fixed number of rows. A warp sums a slice of
// some columns. The block's first warp adds the slices of a shard in order, then the shards along the reduction tree.
// The last blocks of another kernel may compute these sums as its tail.
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "compiler/codegen/gpu/Tree.h"
#include "dialects/mt/Compilation.h"
#include "llvm/ADT/SetVector.h"
#include <utility>

using namespace mlir;
using namespace mtc;

namespace {
// Rows of a slice, and slices of a shard; none if there are so many shards that they are slices enough.
struct Slices {
  int64_t rows = 0, count = 0;
};

class BlockReduce {
public:
  // `computed`: the number of the result, whose operand is computed from others; -1: the result is one whose
  // operand is an argument.
  BlockReduce(BlockKernel &kernel, int64_t computed);
  void run();

private:
  void sum();
  void chooseResult();
  void chooseComputed(int64_t number);
  Value element(Value row);
  Value sumRows(Value begin, Value end);
  Value sumRows(Type element, Value begin, Value end);
  void sumSlices();
  Value addSlices(Value begin, Value end);
  Value sliceAt(Value number);

  BlockKernel &kernel;
  Emitter &emit;
  Type f32;
  Shards shards;
  Slices slices;
  Value lane, warp;
  SmallVector<Type> types; // of operands
  // For the result of the block: numbers of its buffers, its columns, its first tile, and the index of its operand's
  // type in `types`.
  Value operand, result, count, firstTile, kind;
  Value computed;                        // the operand, if it is computed; else null
  llvm::DenseMap<Value, Value> pointers; // of the arguments that it is computed from
  Value column, from;                    // the thread's column; address of the operand
  Value sums;                            // sums of slices, in workgroup memory
};
} // namespace

static Slices slicesOf(const Kernel &kernel) {
  int64_t shards = mt::Compilation(kernel.op).getShards(), rows = kernel.shardRows;
  if (kernel.fast) { // the samples of a device are one shard
    rows *= shards;
    shards = 1;
  }
  if (shards > maxReduceSlices)
    return {};
  int64_t most = std::min(ceilDiv(rows, reduceSliceRows), maxReduceSlices / shards), each = ceilDiv(rows, most);
  return {each, ceilDiv(rows, each)};
}

BlockReduce::BlockReduce(BlockKernel &kernel, int64_t computed)
    : kernel(kernel), emit(kernel.emit), f32(emit.getF32Type()), shards(shardsOf(kernel)), slices(slicesOf(kernel)),
      lane(emit.rem(kernel.thread, emit.integer(reduceColumns))),
      warp(emit.div(kernel.thread, emit.integer(reduceColumns))) {
  computed < 0 ? chooseResult() : chooseComputed(computed);
  // Threads after the last column sum the last column too, because they take part in barriers.
  Value first = emit.mul(emit.sub(kernel.tile, firstTile), reduceColumns);
  column = emit.min(emit.add(first, lane), emit.add(count, -1));
  if (!this->computed)
    from = kernel.pointerKnownHere(operand, /*isNumber=*/false);
}

static mt::ReduceOp sumOf(Value yield) { return yield.getDefiningOp<mt::ReduceOp>(); }
static bool isComputed(Value yield) { return !isa<BlockArgument>(sumOf(yield).getOperand()); }
static bool isNumber(Value value) { return !isSplit(value) && innerCount(value) == 1; }
static int64_t tilesOfResult(Value yield) { return ceilDiv(innerCount(yield), reduceColumns); }

void BlockReduce::chooseComputed(int64_t number) {
  int64_t tiles = 0;
  for (Value yield : kernel.yields().take_front(number))
    tiles += tilesOfResult(yield);
  Value yield = kernel.yields()[number];
  computed = sumOf(yield).getOperand();
  result = emit.integer(static_cast<int64_t>(kernel.body().getNumArguments()) + number);
  count = emit.integer(innerCount(yield));
  firstTile = emit.integer(tiles);
  types = {f32};
  llvm::SetVector<Value> read;
  read.insert(computed);
  for (size_t i = 0; i < read.size(); ++i)
    if (Operation *op = read[i].getDefiningOp())
      read.insert(op->operand_begin(), op->operand_end());
  for (Value value : read)
    if (auto argument = dyn_cast<BlockArgument>(value))
      pointers[value] = kernel.pointerKnownHere(emit.integer(argument.getArgNumber()), isNumber(value));
}

// The thread's element of a row of the computed operand. The operands of its operations have as many elements per row
// as the result, or one.
Value BlockReduce::element(Value row) {
  VectorBody body(kernel, /*scalar=*/true, [&](Value value) -> Value {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument)
      return Value();
    Value index = innerCount(value) == 1 ? emit.integer(0) : column;
    if (isSplit(value))
      index = emit.add(emit.mul(row, innerCount(value)), index);
    return emit.load(elementOf(value), emit.address(pointers.lookup(argument), elementOf(value), index));
  });
  return body.get(computed);
}

// The result of a tile is selected first, so that all results share code, except for the types of operands.
void BlockReduce::chooseResult() {
  int64_t tiles = 0, arguments = kernel.body().getNumArguments();
  for (auto [i, yield] : llvm::enumerate(kernel.yields())) {
    if (isComputed(yield)) {
      tiles += tilesOfResult(yield);
      continue;
    }
    mt::ReduceOp reduce = sumOf(yield);
    Value here = emit.less(emit.integer(tiles - 1), kernel.tile);
    auto choose = [&](Value &chosen, int64_t number) {
      Value mine = emit.integer(number);
      chosen = chosen ? Value(arith::SelectOp::create(emit, here, mine, chosen)) : mine;
    };
    choose(operand, cast<BlockArgument>(reduce.getOperand()).getArgNumber());
    choose(result, arguments + i);
    choose(count, innerCount(yield));
    Type element = elementOf(reduce.getOperand());
    choose(kind, llvm::find(types, element) - types.begin());
    if (!llvm::is_contained(types, element))
      types.push_back(element);
    choose(firstTile, tiles);
    tiles += tilesOfResult(yield);
  }
}

// A chain from +0 over the thread's column. Several rows are loaded before the first of them is added, so that memory
// latency is paid once. A row after the last counts as +0, which does not change the chain.
Value BlockReduce::sumRows(Type type, Value begin, Value end) {
  Value zero = emit.zeros(f32), last = emit.add(end, -1);
  return emit.loop(begin, end, rowsAtOnce, zero, [&](Value first, ValueRange carried) {
    Emitter::Values loaded;
    for (int64_t i = 0; i < rowsAtOnce; ++i) {
      Value row = emit.add(first, i), there = emit.less(row, end);
      Value value, inside = emit.min(row, last);
      if (computed)
        value = element(inside);
      else
        value = emit.load(type, emit.address(from, type, emit.add(emit.mul(inside, count), column)));
      loaded.push_back(arith::SelectOp::create(emit, there, value, zero));
    }
    Value sum = carried[0];
    for (Value value : loaded)
      sum = arith::AddFOp::create(emit, sum, value);
    return Emitter::Values{sum};
  })[0];
}

Value BlockReduce::sumRows(Value begin, Value end) {
  if (types.size() == 1)
    return sumRows(types.front(), begin, end);
  Value sum = emit.zeros(f32);
  for (auto [number, element] : llvm::enumerate(types)) {
    auto here = [&, type = element] { return sumRows(type, begin, end); };
    sum = choose(emit, emit.equal(kind, emit.integer(number)), here, sum);
  }
  return sum;
}

// Address of the thread's sum of a slice; slices are numbered over all shards.
Value BlockReduce::sliceAt(Value number) {
  return emit.address(sums, f32, emit.add(emit.mul(number, reduceColumns), lane));
}

void BlockReduce::sumSlices() {
  int64_t all = kernel.fast ? 1 : mt::Compilation(kernel.op).getShards();
  sums = kernel.allocateShared(f32, all * slices.count * reduceColumns);
  Value perShard = emit.integer(slices.count);
  emit.loop(warp, emit.mul(shards.count, slices.count), kernel.gpu.threads / reduceColumns, [&](Value number) {
    Value first = emit.mul(emit.div(number, perShard), shards.size);
    Value begin = emit.add(first, emit.mul(emit.rem(number, perShard), slices.rows));
    Value end = emit.min(emit.add(first, shards.size), shards.rows);
    emit.store(sumRows(begin, emit.min(emit.add(begin, slices.rows), end)), sliceAt(number));
  });
  kernel.barrier();
}

// Adds the slices of a shard that have rows, in order.
Value BlockReduce::addSlices(Value begin, Value end) {
  Value first = emit.mul(emit.div(begin, shards.size), slices.count);
  Value sliceEnd = emit.add(first, emit.ceilDiv(emit.sub(end, begin), slices.rows));
  return emit.loop(emit.add(first, 1), sliceEnd, 1, emit.load(f32, sliceAt(first)),
                   [&](Value next, ValueRange carried) {
                     return Emitter::Values{arith::AddFOp::create(emit, carried[0], emit.load(f32, sliceAt(next)))};
                   })[0];
}

void BlockReduce::run() {
  emit.when(emit.less(emit.integer(0), shards.rows), [&] { sum(); });
}

void BlockReduce::sum() {
  if (slices.count)
    sumSlices();
  Value there = emit.less(emit.add(emit.mul(emit.sub(kernel.tile, firstTile), reduceColumns), lane), count);
  emit.when(both(emit, there, emit.equal(warp, emit.integer(0))), [&] {
    auto shard = [&](Value begin, Value end) {
      return Emitter::Values{slices.count ? addSlices(begin, end) : sumRows(begin, end)};
    };
    emitBlockTree(kernel, 1, shard, [&](ValueRange root) {
      emit.store(root[0], emit.address(kernel.pointer(result, /*isNumber=*/true), f32, column));
    });
  });
}

GpuGrid mtc::reduceGpuGrid(plan::KernelOp op, int64_t) {
  int64_t tiles = 0;
  for (Value yield : op.getBody().front().getTerminator()->getOperands())
    tiles += tilesOfResult(yield);
  return {reduceWarps * warpThreads, 0, tiles, 0, 0};
}

LogicalResult mtc::emitBlockReduce(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  OperandRange yields = kernel.yields();
  if (llvm::none_of(yields, isComputed)) {
    BlockReduce(kernel, -1).run();
    return success();
  }
  // A block has one result, so the results share workgroup memory.
  int64_t before = kernel.gpu.sharedBytes, most = before, tiles = 0;
  auto run = [&](int64_t number) {
    BlockReduce(kernel, number).run();
    most = std::max(most, std::exchange(kernel.gpu.sharedBytes, before));
  };
  Value others = emit.equal(emit.integer(0), emit.integer(0)); // whether the result's operand is an argument
  for (auto [i, yield] : llvm::enumerate(yields)) {
    int64_t end = tiles + tilesOfResult(yield);
    if (isComputed(yield)) {
      Value here =
          both(emit, emit.less(emit.integer(tiles - 1), kernel.tile), emit.less(kernel.tile, emit.integer(end)));
      emit.when(here, [&, number = i] { run(static_cast<int64_t>(number)); });
      Value elsewhere = arith::XOrIOp::create(emit, here, emit.equal(emit.integer(0), emit.integer(0)));
      others = both(emit, others, elsewhere);
    }
    tiles = end;
  }
  if (!llvm::all_of(yields, isComputed))
    emit.when(others, [&] { run(-1); });
  kernel.gpu.sharedBytes = most;
  return success();
}
