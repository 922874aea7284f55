// SPDX-License-Identifier: Apache-2.0
//
// Kernels of rows that are one loop with sums of columns: the channels of pixels, of one sample. A block has some
// columns of a row, a thread adjacent ones of some pixels.
#include "compiler/codegen/common/Rules.h"
#include "compiler/codegen/gpu/BlockRows.h"
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mtc;

int64_t mtc::columnsOf(plan::KernelOp op) {
  SmallVector<Operation *> operations;
  for (Operation &inner : op.getBody().front().without_terminator()) {
    // What has no rows is a constant, or one spread along the row.
    bool isSpread =
        isa<mt::ConstantOp>(inner) || resolve(inner.getResult(0)) != inner.getResult(0) || periodOf(inner.getResult(0));
    if (!isSplit(inner.getResult(0)) && !isSpread)
      return 0;
    if (isSplit(inner.getResult(0)))
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
  // Each yield is stored by the step.
  llvm::SmallPtrSet<Operation *, 4> yielded;
  for (Value yield : op.getBody().front().getTerminator()->getOperands()) {
    Operation *from = resolve(yield).getDefiningOp();
    if (!from || !llvm::is_contained(steps[0].operations, from) || !yielded.insert(from).second)
      return 0;
  }
  return sums ? steps[0].period : 0;
}

int64_t mtc::columnsTogether(int64_t columns) { return columns % maxColumnWidth == 0 ? maxColumnWidth : columnWidth; }

GpuGrid mtc::columnGrid(plan::KernelOp op, int64_t columns) {
  int64_t lines = 1;
  for (Operation &inner : op.getBody().front())
    if (auto reduce = dyn_cast<mt::ReduceOp>(inner))
      lines = innerCount(reduce.getOperand()) / columns;
  auto groups = static_cast<int64_t>(llvm::bit_ceil(static_cast<uint64_t>(ceilDiv(lines, minColumnLines))));
  int64_t width = columnsTogether(columns);
  int64_t threads = std::clamp(groups * width / elementsPerThread, minColumnThreads, maxColumnThreads);
  return {threads, 1, columns / width, 0, 0};
}

// Pixels that a thread loads before it computes the first, of `count` that it has: so many that enough bytes are on
// their way, and that few are left over.
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

// Adjacent columns, from `inner` on, of `count` pixels that are `apart`, the first of which is `pixel`. `sums` holds
// what each column has so far of each reduction. The loads of all pixels come first.
Emitter::Values BlockRows::runPixels(const RowStatement &statement, Value inner, const Spread &spread, Value pixel,
                                     int64_t count, int64_t apart, ValueRange sums) {
  SmallVector<Chunk> chunks;
  for (int64_t i = 0; i < count; ++i) {
    Value first = emit.add(emit.mul(emit.add(pixel, i * apart), statement.period), inner);
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
    storeTogether(stores, elementsPerThread);
  }
  return next;
}

// What each group of threads has of its columns, folded by halves. `sums` is of all reductions of a column, then of
// the next column.
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
    storeTogether(stores, elementsPerThread);
  };
  SmallVector<Value> lines; // of each reduction, the thread's sums
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

// Groups of threads share the pixels out; a group takes every so many-th.
void BlockRows::runColumns(const RowStatement &statement) {
  int64_t share = columnsOfBlock / elementsPerThread, lines = statement.count / statement.period;
  int64_t groups = std::min<int64_t>(llvm::bit_ceil(static_cast<uint64_t>(lines)), kernel.gpu.threads / share);
  Value group = emit.div(kernel.thread, emit.integer(share));
  Value inner = emit.add(firstColumn, emit.mul(emit.rem(kernel.thread, emit.integer(share)), elementsPerThread));
  Spread spread; // loaded here, since LLVM could not tell that the loop's stores leave it as it is
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
  // What each group has, several at once, then what only some have, and what is left over.
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
