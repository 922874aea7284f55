// SPDX-License-Identifier: Apache-2.0
//
// Products summed over the batch, in which several blocks share a tile of the result.
#include "compiler/codegen/gpu/Sizes.h"
#include "compiler/codegen/gpu/Tree.h"
#include "dialects/mt/Compilation.h"
#include "runtime/abi/gpu_kernel.h"

using namespace mlir;
using namespace mtc;

// Largest number of shards whose partial sums are worth their memory; length of a sum that may be worth several blocks;
// smallest length for a block, with FMAs and with tensor cores. The length of a slice is a multiple of sliceUnit, which
// is full panels of any type. The bits of sums over the batch depend on all these numbers and on chooseSlices, so they
// are the same for every architecture.
constexpr int64_t maxShards = 32, longSum = 512, minPositions = 128, minTensorPositions = 1024, sliceUnit = 32;

static int64_t shardsOfAll(plan::KernelOp op) { return mt::Compilation(op).getShards(); }

namespace {
// Costs of a block in units of the time of one position of k: start and end; writing its partial sums to device memory;
// and, for the last block of a shard, adding the partial sums of one slice. Derived from step times of an H100, where
// sums of 128 x 128 take 19 ns per position on tensor cores in 16 bits, twice that in TF32, and 13 times that in
// float32.
struct BlockCosts {
  int64_t start, partials, slice;
};
} // namespace

static BlockCosts costsOf(StringRef precision) {
  if (precision == "f32")
    return {16, 32, 2};
  return precision == "tf32" ? BlockCosts{32, 192, 12} : BlockCosts{64, 384, 24};
}

// Number of slices of each shard of `all` positions: the number for which an H100 with all shards, whose blocks run in
// rounds, takes the least time. 0: a block sums all shards.
static int64_t chooseSlices(int64_t tiles, const ProductTile &tile, int64_t shards, int64_t all, int64_t most,
                            const BlockCosts &costs) {
  int64_t slots = usualMultiprocessors * residentThreads / tile.threads();
  int64_t least = ceilDiv(tiles, slots) * (shards * all + costs.start), best = 0;
  for (int64_t slices = 1; slices <= most && tiles * (shards + 1) <= MT_GPU_COUNTERS; ++slices) {
    int64_t blocks = tiles * slices * shards;
    int64_t cost = ceilDiv(blocks, slots) * (ceilDiv(all, slices) + costs.start) + blocks * costs.partials / slots +
                   (slices + shards) * costs.slice;
    if (cost < least && slices * shards > 1) {
      least = cost;
      best = slices;
    }
  }
  return best;
}

ProductTree mtc::productTree(plan::KernelOp op, int64_t rows, int64_t columns, int64_t count, int64_t lines,
                             int64_t shardRows) {
  int64_t all = shardRows * lines, shards = shardsOfAll(op);
  StringRef precision = mt::Compilation(op).getPrecision();
  bool isLong = shards * all >= longSum && shards <= maxShards;
  int64_t most = std::max<int64_t>(1, all / (precision == "f32" ? minPositions : minTensorPositions));
  ProductTile tile = treeTile(rows, columns, count, isLong, most * shards);
  int64_t tiles = tilesOf(tile, rows, columns) * count;
  ProductTree tree{tile, tiles, lines, {}};
  if (!isLong)
    return tree;
  if (int64_t slices = chooseSlices(tiles, tile, shards, all, most, costsOf(precision))) {
    int64_t positions = ceilDiv(ceilDiv(all, slices), sliceUnit) * sliceUnit;
    tree.cut = {ceilDiv(all, positions), positions};
  }
  return tree;
}

GpuGrid mtc::treeGrid(plan::KernelOp op, const ProductTree &tree, int64_t shardRows) {
  if (!tree.cut.slices)
    return {tree.tile.threads(), 0, tree.tiles, 0, 0};
  int64_t inner = tree.tiles * tree.cut.slices;
  return {
      tree.tile.threads(), shardRows, inner, 0, 0, 4 * shardsOfAll(op) * inner * tree.tile.rows * tree.tile.columns};
}

Value mtc::resultTile(BlockKernel &kernel, const ProductTree &tree) {
  return tree.cut.slices ? kernel.emit.rem(kernel.tile, kernel.emit.integer(tree.tiles)) : kernel.tile;
}

namespace {
// Communication between the blocks of one tile of the result.
class Partials {
public:
  Partials(BlockKernel &kernel, ProductBlock &block, const ProductTree &tree, Value tile)
      : kernel(kernel), emit(kernel.emit), tree(tree), tile(tile), count(tree.tile.perRow * tree.tile.perColumn),
        flag(block.flag()) {}

  void store(Value shard, Value slice, ValueRange sums) {
    Value address = addressOf(shard, slice);
    for (int64_t i = 0; i < count; i += chunkElements)
      storeChunk(emit, sums.slice(i, chunkElements), emit.address(address, emit.getF32Type(), i * tree.tile.threads()));
  }
  Emitter::Values load(Value shard, Value slice) {
    Value address = addressOf(shard, slice);
    Emitter::Values sums;
    for (int64_t i = 0; i < count; i += chunkElements) {
      Value from = emit.address(address, emit.getF32Type(), i * tree.tile.threads());
      Value chunk = loadChunk(emit, emit.getF32Type(), from, chunkElements);
      for (int64_t j = 0; j < chunkElements; ++j)
        sums.push_back(emit.extract(chunk, j));
    }
    return sums;
  }
  // isLastBlock for one of the tile's counters.
  Value isLast(Value counter, Value expected) {
    return isLastBlock(kernel, emit.add(emit.mul(counter, tree.tiles), tile), expected, flag);
  }

private:
  BlockKernel &kernel;
  Emitter &emit;
  const ProductTree &tree;
  Value tile;
  int64_t count;
  Value flag;

  // Address of a thread's sums, in groups of four; adjacent threads have adjacent groups. The base is loaded again each
  // time, so that it occupies no register while the block adds.
  Value addressOf(Value shard, Value slice) {
    Value number = emit.add(emit.mul(emit.add(emit.mul(shard, tree.cut.slices), slice), tree.tiles), tile);
    Value first =
        emit.add(emit.mul(number, tree.tile.rows * tree.tile.columns), emit.mul(kernel.thread, chunkElements));
    return emit.address(kernel.partials(), emit.getF32Type(), first);
  }
};
} // namespace

Value mtc::isLastBlock(BlockKernel &kernel, Value counter, Value expected, Value flag) {
  Emitter &emit = kernel.emit;
  Type i32 = emit.getI32Type();
  Value address = emit.address(kernel.counters(), i32, counter);
  auto fence = [&] { LLVM::FenceOp::create(emit, LLVM::AtomicOrdering::acq_rel, "device"); };
  auto number = [&](int32_t value) { return arith::ConstantOp::create(emit, emit.getI32IntegerAttr(value)); };
  // The barrier orders the stores of the block's threads before the first thread's fence, which releases them to blocks
  // that increment the counter later. The second fence acquires the stores of blocks that incremented it before, for
  // all threads after the next barrier. By PTX' memory model, one fence per thread instead would order nothing.
  kernel.barrier();
  kernel.firstThread([&] {
    fence();
    Value before = LLVM::AtomicRMWOp::create(emit, LLVM::AtomicBinOp::add, address, number(1),
                                             LLVM::AtomicOrdering::monotonic, "device");
    fence();
    Value last = emit.equal(emit.add(before, number(1)), arith::TruncIOp::create(emit, i32, expected));
    emit.when(last, [&] { emit.store(number(0), address); });
    emit.store(arith::ExtUIOp::create(emit, i32, last), flag);
  });
  kernel.barrier();
  Value isLast = emit.equal(emit.load(i32, flag), number(1));
  kernel.barrier(); // sums overwrite the flag next
  return isLast;
}

void mtc::emitProductTree(BlockKernel &kernel, ProductBlock &block, const ProductTree &tree,
                          llvm::function_ref<Emitter::Values(Value, Value, Value)> sum,
                          llvm::function_ref<void(ValueRange)> finish) {
  Emitter &emit = kernel.emit;
  if (!tree.cut.slices) {
    auto shard = [&](Value from, Value to) { return sum(from, emit.mul(from, tree.lines), emit.mul(to, tree.lines)); };
    return emitBlockTree(kernel, block.count(), shard, finish);
  }
  int64_t inner = tree.tiles * tree.cut.slices;
  Value shard = emit.div(kernel.tile, emit.integer(inner)), zero = emit.integer(0), rows = kernel.rows();
  Value slice = emit.div(emit.rem(kernel.tile, emit.integer(inner)), emit.integer(tree.tiles));
  Value sample = emit.mul(shard, kernel.shardRows), begin = emit.mul(sample, tree.lines);
  Value end = emit.mul(emit.min(emit.add(sample, kernel.shardRows), rows), tree.lines);
  Value from = emit.add(begin, emit.mul(slice, tree.cut.positions));
  emit.when(emit.less(from, end), [&] {
    Partials partials(kernel, block, tree, resultTile(kernel, tree));
    partials.store(shard, slice, sum(sample, from, emit.min(emit.add(from, tree.cut.positions), end)));
    Value slices = emit.ceilDiv(emit.sub(end, begin), tree.cut.positions);
    emit.when(partials.isLast(shard, slices), [&] {
      Emitter::Values whole =
          emit.loop(emit.integer(1), slices, 1, partials.load(shard, zero), [&](Value next, ValueRange carried) {
            Emitter::Values sums = partials.load(shard, next);
            for (auto [i, value] : llvm::enumerate(sums))
              value = arith::AddFOp::create(emit, carried[i], value);
            return sums;
          });
      partials.store(shard, zero, whole);
      Shards shards{rows, emit.integer(kernel.shardRows), emit.ceilDiv(rows, kernel.shardRows),
                    siblingLevels(kernel.op, /*fast=*/false) + 1};
      emit.when(partials.isLast(emit.integer(shardsOfAll(kernel.op)), shards.count), [&] {
        emitBlockTree(
            kernel, block.count(), shards,
            [&](Value first, Value) { return partials.load(emit.div(first, emit.integer(kernel.shardRows)), zero); },
            finish);
      });
    });
  });
}
