// SPDX-License-Identifier: Apache-2.0
//
// Tails (docs/gpu-code.md): what the last blocks of a kernel compute for the kernels after it, and single numbers,
// which the first block computes. The blocks that write what a part of a tail reads count themselves, and the last of
// them computes the part. The counters of samples come first, then the counters of a sum over the batch.
#include "compiler/codegen/KernelKinds.h"
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "compiler/codegen/gpu/TileSums.h"
#include "compiler/codegen/gpu/Tree.h"
#include "dialects/mt/Compilation.h"
#include "runtime/abi/gpu_kernel.h"

using namespace mlir;
using namespace mtc;

namespace {
// Parts of a kernel, by columns, which separate blocks compute: `count` of them, and the part of this block.
struct Parts {
  int64_t count;
  Value part;
};
} // namespace

BlockKernel mtc::tailKernel(BlockKernel &head, const Tail &tail, int64_t buffers) {
  Emitter &emit = head.emit;
  plan::KernelOp op = tail.op;
  GpuGrid grid = codeOf(op).gpuGrid(op, head.shardRows);
  grid.innerTiles *= tail.form.lines;
  grid.threads = head.gpu.threads;
  BlockKernel kernel({emit, op, op.getKind(), {}, head.shardRows, head.fast, head.params, {}, {}, {}, tail.form}, grid);
  kernel.loadedRows = head.loadedRows;
  kernel.thread = head.thread;
  kernel.segment = head.segment;
  kernel.memory = head.memory;
  kernel.buffers = emit.address(head.buffers, emit.pointer(), buffers);
  return kernel;
}

// The flag by which a block tells its threads whether it is the last, at the start of the workgroup memory.
static Value flagOf(BlockKernel &head) {
  head.gpu.sharedBytes = std::max<int64_t>(head.gpu.sharedBytes, maxAccessBytes);
  return head.memory;
}

// A sum over the batch: `blocks` blocks write what a part of it reads.
static LogicalResult emitSum(BlockKernel &head, const Tail &tail, int64_t buffers, Parts parts, Value blocks,
                             int64_t firstCounter, Value flag) {
  Emitter &emit = head.emit;
  LogicalResult status = success();
  emit.when(isLastBlock(head, emit.add(parts.part, firstCounter), blocks, flag), [&] {
    BlockKernel kernel = tailKernel(head, tail, buffers);
    int64_t results = kernel.yields().size(), tiles = kernel.gpu.innerTiles / parts.count, each = tiles;
    if (parts.count > 1) // all results have the same columns
      each = tiles / results;
    emit.loop(emit.integer(0), emit.integer(tiles), 1, [&](Value number) {
      Value result = emit.div(number, emit.integer(each));
      Value first = emit.mul(emit.add(emit.mul(result, parts.count), parts.part), each);
      kernel.tile = emit.add(first, emit.rem(number, emit.integer(each)));
      status = emitBlockReduce(kernel);
      kernel.barrier(); // the next tile overwrites the workgroup memory
    });
    head.gpu.sharedBytes = std::max(head.gpu.sharedBytes, kernel.gpu.sharedBytes);
  });
  return status;
}

// Whether `count` parts of the columns of a rows kernel are parts of the sum's results too.
static bool haveParts(plan::KernelOp sum, int64_t columns, int64_t count) {
  return columns && columns % (count * reduceColumns) == 0 &&
         llvm::all_of(sum.getBody().front().getTerminator()->getOperands(),
                      [&](Value yield) { return innerCount(yield) == columns; });
}

std::optional<TileShape> mtc::tileShapeOf(plan::KernelOp op) {
  switch (op.getKind()) {
  case mt::KernelKind::conv:
    return convTileShape(op);
  case mt::KernelKind::matmul:
    return matmulTileShape(op);
  default:
    return std::nullopt;
  }
}

// Rows whose samples the head computes, by the last block of these samples: or, if the head has several tiles side by
// side, of their columns. Then the sum over the batch of these, if there is one.
static LogicalResult emitSamples(BlockKernel &head, ArrayRef<Tail> tails) {
  Emitter &emit = head.emit;
  BlockKernel kernel = tailKernel(head, tails.front(), buffersOf(head.op));
  std::optional<TileShape> shape = tileShapeOf(head.op);
  int64_t columns = columnsOf(kernel.op), across = shape ? shape->across() : 1, tiles = kernel.gpu.innerTiles;
  int64_t warps = isWarpRows(kernel.op) ? kernel.gpu.threads / warpThreads : 1; // rows that are computed at once
  bool sameColumns = columns == tensorOf(head.yields().front()).getShape().back();
  int64_t count = sameColumns && tiles % across == 0 ? across : 1;
  Parts parts{count, emit.rem(head.tile, emit.integer(count))};
  // Samples share counters if there are many.
  int64_t inner = head.gpu.innerTiles, samples = head.gpu.rowsPerTile, reserved = count;
  int64_t groups = ceilDiv(head.shardRows * mt::Compilation(head.op).getShards(), samples), shared = 1;
  while (ceilDiv(groups, shared) * count + reserved > MT_GPU_COUNTERS)
    ++shared;
  Value rows = head.rows(), group = emit.div(head.tile, emit.integer(inner * shared));
  Value first = emit.mul(group, shared * samples), end = emit.min(emit.add(first, shared * samples), rows);
  Value blocks = emit.mul(emit.ceilDiv(emit.sub(end, first), samples), inner / count);
  Value flag = flagOf(head);
  LogicalResult status = success();
  emit.when(isLastBlock(head, emit.add(emit.mul(group, count), parts.part), blocks, flag), [&] {
    kernel.bindPointers();
    int64_t each = tiles / count;
    if (head.sums) {
      mergeTileSums(head, kernel, first, end, parts.part, count);
      kernel.barrier();
    } else {
      assert(shared * samples % warps == 0 && "tiles of products have a multiple of 8 rows");
      Value from = emit.div(emit.mul(first, each), emit.integer(warps));
      emit.loop(from, emit.ceilDiv(emit.mul(end, each), warps), 1, [&](Value number) {
        Value sample = emit.div(number, emit.integer(each));
        Value inPart = emit.add(emit.mul(parts.part, each), emit.rem(number, emit.integer(each)));
        kernel.tile = emit.add(emit.mul(sample, tiles), inPart);
        status = emitBlockRows(kernel);
        kernel.warp = Value(); // all threads of the block go on
        kernel.thread = head.thread;
        kernel.barrier();
      });
    }
    head.gpu.sharedBytes = std::max(head.gpu.sharedBytes, kernel.gpu.sharedBytes);
    if (failed(status) || tails.size() == 1)
      return;
    Value all = emit.ceilDiv(rows, shared * samples);
    bool byPart = haveParts(tails[1].op, columns, count);
    if (!byPart)
      all = emit.mul(all, count);
    status = emitSum(head, tails[1], buffersOf(head.op) + buffersOf(tails[0].op),
                     byPart ? parts : Parts{1, emit.integer(0)}, all, ceilDiv(groups, shared) * count, flag);
  });
  return status;
}

LogicalResult mtc::emitNumbers(BlockKernel &head, const Tail &tail) {
  Emitter &emit = head.emit;
  Value isFirst = emit.equal(emit.add(head.tile, head.segment), emit.integer(0));
  LogicalResult status = success();
  emit.when(isFirst, [&] {
    head.barrier(); // the head's workgroup memory is free
    BlockKernel kernel = tailKernel(head, tail, buffersOf(head.op));
    kernel.bindPointers();
    status = codeOf(tail.op).emitGpu(kernel);
    head.gpu.sharedBytes = std::max(head.gpu.sharedBytes, kernel.gpu.sharedBytes);
  });
  return status;
}

LogicalResult mtc::emitTails(BlockKernel &head, ArrayRef<Tail> tails, Value blocks) {
  Emitter &emit = head.emit;
  plan::KernelOp first = tails.front().op;
  if (first.getKind() == mt::KernelKind::rows)
    return emitSamples(head, tails);
  int64_t columns = columnsOf(head.op), count = columns ? columns / columnsPerBlock(columns) : 1;
  Parts parts{1, emit.integer(0)};
  if (haveParts(first, columns, count)) {
    parts = {count, emit.rem(head.tile, emit.integer(count))};
    blocks = emit.div(blocks, emit.integer(count));
  }
  Value flag = flagOf(head);
  return emitSum(head, tails.front(), buffersOf(head.op), parts, blocks, 0, flag);
}
