// SPDX-License-Identifier: Apache-2.0
//
// Rows kernels that are one loop with sums of columns: the channels of the pixels of one sample. The loop may read the
// first pixel of the sample. A block has some
// columns of a row, and a thread adjacent columns of some pixels.
#include "compiler/codegen/common/Rules.h"
#include "compiler/codegen/gpu/BlockRows.h"
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mtc;

bool mtc::isFirstPixel(Operation *op) {
  if (auto cast = dyn_cast_if_present<mt::CastOp>(op))
    return isFirstPixel(cast.getOperand().getDefiningOp());
  auto slice = dyn_cast_if_present<mt::SliceOp>(op);
  if (!slice || !isa<BlockArgument>(resolve(slice.getOperand())) || !isSplit(slice.getResult()))
    return false;
  int64_t columns = innerCount(slice.getResult());
  return columns == innerShape(slice.getOperand()).back() &&
         llvm::all_of(slice.getStarts(), [](int64_t start) { return start == 0; });
}

int64_t mtc::columnsOf(plan::KernelOp op) {
  SmallVector<Operation *> operations;
  for (Operation &inner : op.getBody().front().without_terminator()) {
    // A value without rows is a constant, or is repeated along the row.
    bool isSpread =
        isa<mt::ConstantOp>(inner) || resolve(inner.getResult(0)) != inner.getResult(0) || periodOf(inner.getResult(0));
    if (!isSplit(inner.getResult(0)) && !isSpread)
      return 0;
    if (isSplit(inner.getResult(0)) && !isFirstPixel(&inner))
      operations.push_back(&inner);
  }
  std::vector<RowStatement> steps = splitStatements(operations);
  if (op.getKind() != mt::KernelKind::rows || steps.size() != 1 || !steps[0].loop || steps[0].period % columnWidth != 0)
    return 0;
  bool sums = false;
  for (Operation *inner : steps[0].operations) {
    if (isa<mt::ReduceOp>(inner) && !leadingPeriod(inner))
      return 0;
    sums |= isa<mt::ReduceOp>(inner);
  }
  // The statement stores each yield.
  llvm::SmallPtrSet<Operation *, 4> yielded;
  for (Value yield : op.getBody().front().getTerminator()->getOperands()) {
    Operation *from = resolve(yield).getDefiningOp();
    if (!from || !llvm::is_contained(steps[0].operations, from) || !yielded.insert(from).second)
      return 0;
  }
  return sums ? steps[0].period : 0;
}

int64_t mtc::columnsPerBlock(int64_t columns) { return columns % maxColumnWidth == 0 ? maxColumnWidth : columnWidth; }

GpuGrid mtc::columnGrid(plan::KernelOp op, int64_t columns) {
  int64_t lines = 1;
  for (Operation &inner : op.getBody().front())
    if (auto reduce = dyn_cast<mt::ReduceOp>(inner))
      lines = innerCount(reduce.getOperand()) / columns;
  auto groups = static_cast<int64_t>(llvm::bit_ceil(static_cast<uint64_t>(ceilDiv(lines, minColumnLines))));
  int64_t width = columnsPerBlock(columns);
  int64_t threads = std::clamp(groups * width / elementsPerThread, minColumnThreads, maxColumnThreads);
  return {threads, 1, columns / width, 0, 0};
}

// Number of pixels, of the thread's `count`, that a thread loads before it computes the first: enough to have many
// bytes in flight, with few pixels left over.
static int64_t pixelsAtOnce(Emitter &emit, const RowStatement &statement, int64_t count) {
  llvm::SmallPtrSet<Value, 4> loaded;
  int64_t bytes = 0;
  for (Operation *op : statement.operations)
    for (Value operand : op->getOperands()) {
      Value root = resolve(operand);
      if (isa<BlockArgument>(root) && innerCount(root) == statement.count && loaded.insert(root).second)
        bytes += elementsPerThread * emit.bytes(elementOf(root));
    }
  int64_t most = std::clamp<int64_t>(ceilDiv(bytesInFlight, std::max<int64_t>(1, bytes)), 1, maxPixelsAtOnce);
  return ceilDiv(count, ceilDiv(count, most));
}

// Processes adjacent columns, from `inner` on, of `count` pixels from `pixel` on, at a distance of `distance`. `sums`
// has the sums so far of each column and reduction. All loads come first.
Emitter::Values BlockRows::runPixels(const RowStatement &statement, Value inner, const Spread &spread, Value pixel,
                                     int64_t count, int64_t distance, ValueRange sums) {
  SmallVector<Chunk> chunks;
  for (int64_t i = 0; i < count; ++i) {
    Value first = emit.add(emit.mul(emit.add(pixel, i * distance), statement.period), inner);
    chunks.push_back(chunkAt(first, elementsPerThread));
    chunks.back().elements = spread;
  }
  Emitter::Values next(sums);
  int64_t each = static_cast<int64_t>(sums.size()) / elementsPerThread;
  for (Chunk &chunk : chunks) {
    SmallVector<BlockStore> stores;
    for (int64_t lane = 0; lane < elementsPerThread; ++lane) {
      Position position{
          emit.add(chunk.first, lane), statement.count, emit.add(inner, lane), statement.period, &chunk, lane};
      runElement(statement, position, MutableArrayRef(next).slice(lane * each, each), stores);
    }
    storeAdjacent(stores, elementsPerThread);
  }
  return next;
}

// Reduces the sums of the groups of threads by halves. `sums` has the sums of all reductions for a column, then for the
// next column.
void BlockRows::foldColumns(ArrayRef<mt::ReduceOp> reductions, Value inner, int64_t groups, ValueRange sums) {
  int64_t share = columnsOfBlock / elementsPerThread, each = static_cast<int64_t>(reductions.size());
  auto load = [&](Type element, Value address) {
    Type type = VectorType::get({elementsPerThread}, element);
    return LLVM::LoadOp::create(emit, type, address, elementsPerThread * emit.bytes(element)).getResult();
  };
  auto store = [&](Type element, llvm::function_ref<Value(int64_t lane)> value, Value address) {
    SmallVector<BlockStore> stores;
    for (int64_t lane = 0; lane < elementsPerThread; ++lane)
      stores.push_back({element, value(lane), address});
    storeAdjacent(stores, elementsPerThread);
  };
  SmallVector<Value> lines; // the thread's sums, per reduction
  for (int64_t i = 0; i < each; ++i) {
    Type element = sums[i].getType();
    Value memory = kernel.allocateShared(element, kernel.gpu.threads * elementsPerThread);
    lines.push_back(emit.address(memory, element, emit.mul(kernel.thread, elementsPerThread)));
    store(element, [&](int64_t lane) { return sums[lane * each + i]; }, lines.back());
  }
  for (int64_t half = groups / 2; half >= 1; half /= 2) {
    kernel.barrier();
    emit.when(emit.less(kernel.thread, emit.integer(half * share)), [&] {
      for (auto [reduce, line] : llvm::zip_equal(reductions, lines)) {
        Type element = elementOf(mt::ReduceOp(reduce).getResult());
        Value low = load(element, line), high = load(element, emit.address(line, element, half * columnsOfBlock));
        store(
            element,
            [&, kind = mt::ReduceOp(reduce).getKind()](int64_t lane) {
              return combine(emit, kind, emit.extract(low, lane), emit.extract(high, lane));
            },
            line);
      }
    });
  }
  emit.when(emit.less(kernel.thread, emit.integer(share)), [&] {
    for (auto [reduce, line] : llvm::zip_equal(reductions, lines)) {
      Type element = elementOf(mt::ReduceOp(reduce).getResult());
      Value sum = load(element, line);
      store(
          element, [&](int64_t lane) { return emit.extract(sum, lane); },
          emit.address(targets.lookup(mt::ReduceOp(reduce).getResult()), element, inner));
    }
  });
}

// Groups of threads share the pixels: pixel i belongs to group i modulo the number of groups.
void BlockRows::runColumns(const RowStatement &statement) {
  int64_t share = columnsOfBlock / elementsPerThread, lines = statement.count / statement.period;
  int64_t groups = std::min<int64_t>(llvm::bit_ceil(static_cast<uint64_t>(lines)), kernel.gpu.threads / share);
  Value group = emit.div(kernel.thread, emit.integer(share));
  Value inner = emit.add(firstColumn, emit.mul(emit.rem(kernel.thread, emit.integer(share)), elementsPerThread));
  Spread spread; // loaded here, because LLVM cannot prove that the stores of the loop do not change it
  SmallVector<mt::ReduceOp> reductions;
  for (Operation *op : statement.operations) {
    for (Value operand : op->getOperands())
      if (Value root = resolve(operand); periodOf(root) == statement.period && !spread.contains(root))
        spread[root] = adjacent(root.getDefiningOp()->getOperand(0), inner, elementsPerThread);
    if (auto reduce = dyn_cast<mt::ReduceOp>(op))
      reductions.push_back(reduce);
  }
  Emitter::Values sums;
  for (int64_t lane = 0; lane < elementsPerThread; ++lane)
    for (mt::ReduceOp reduce : reductions)
      sums.push_back(identityOf(emit, reduce));
  // Pixels that all groups have, several at a time; then the rest of these; then pixels that only some groups have.
  Value first = arith::SelectOp::create(emit, emit.less(group, emit.integer(groups)), group, emit.integer(lines));
  int64_t full = lines / groups, atOnce = full ? pixelsAtOnce(emit, statement, full) : 1;
  int64_t end = full / atOnce * atOnce * groups;
  auto pixels = [&](int64_t count) {
    return [&, count](Value pixel, ValueRange running) {
      return runPixels(statement, inner, spread, pixel, count, groups, running);
    };
  };
  if (end)
    sums = emit.loop(first, emit.integer(end), atOnce * groups, sums, pixels(atOnce));
  if (end < lines)
    sums = emit.loop(emit.add(first, end), emit.integer(lines), groups, sums, pixels(1));
  foldColumns(reductions, inner, groups, sums);
}
