// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/common/Rules.h"
#include "compiler/codegen/gpu/BlockRows.h"
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mtc;

// Defines a value of one element that all threads have. A result's buffer may be the buffer of an operand that other
// threads still read, hence the barrier.
void BlockRows::define(Value value, Value scalar) {
  scalars[value] = scalar;
  if (Value pointer = targets.lookup(value)) {
    kernel.barrier();
    kernel.firstThread([&] { emit.store(elementOf(value), scalar, pointer); });
  }
}

// Whether only one loop reads a value, and reads each element for the result at the same index, so that the loop can
// compute it. Not for a sum, whose operands may be overwritten after its statement.
static bool isReadByOneLoop(ArrayRef<RowStatement> statements, Value value) {
  if (value.getDefiningOp<mt::ReduceOp>())
    return false;
  auto reads = [&](const RowStatement &statement, Operation *user) {
    return statement.loop && isa<mt::ElementwiseOpInterface>(user) && llvm::is_contained(statement.operations, user) &&
           innerCount(user->getResult(0)) == innerCount(value);
  };
  return llvm::any_of(statements, [&](const RowStatement &statement) {
    return llvm::all_of(value.getUsers(), [&](Operation *user) { return reads(statement, user); });
  });
}

// If the values of a row need too much memory, values that can be computed again where they are read get no memory. If
// that does not suffice, products are computed again too, and then all values that a loop reads once, whatever an
// element costs.
void BlockRows::chooseComputed(ArrayRef<RowStatement> statements) {
  auto forValues = [&](llvm::function_ref<void(Value, bool read)> each) {
    for (const RowStatement &statement : statements)
      for (Operation *op : statement.operations)
        if (Value value = op->getResult(0); innerCount(value) > 1 && !direct.contains(value))
          each(value, !statement.loop || isReadOutside(statement, value));
  };
  auto bytes = [&] {
    int64_t sum = 0;
    forValues([&](Value value, bool read) {
      if (read && !computed.contains(value))
        sum += innerCount(value) * emit.bytes(elementOf(value));
    });
    return sum;
  };
  constexpr int64_t all = maxSharedBytes - maxFoldedBytes;
  for (auto [most, products, once] :
       {std::tuple(maxKeptBytes / (kernel.gpu.threads / kernel.groupThreads()), false, false),
        std::tuple(all, true, false), std::tuple(all, true, true)}) {
    if (bytes() <= most)
      return;
    computed.clear();
    llvm::DenseSet<Value> kept;
    auto isKept = [&](Value value) { return innerCount(value) == 1 || direct.contains(value) || kept.contains(value); };
    forValues([&, products = products, once = once](Value value, bool read) {
      // A result that is stored at the end may overwrite the values from which it would be computed.
      bool isResult = llvm::any_of(kernel.yields(), [&](Value yield) { return resolve(yield) == value; });
      if (!isResult && (isComputable(value, isKept, products) || (once && isReadByOneLoop(statements, value))))
        computed.insert(value);
      else if (read)
        kept.insert(value);
    });
  }
}

// Allocates memory for the values of a statement that are read after it.
void BlockRows::allocate(const RowStatement &statement) {
  for (Operation *op : statement.operations) {
    Value value = op->getResult(0);
    int64_t count = innerCount(value);
    if (auto it = direct.find(value); it != direct.end())
      targets[value] = results[it->second];
    else if (count > 1 && !computed.contains(value) && (!statement.loop || isReadOutside(statement, value)))
      targets[value] = kernel.allocateShared(elementOf(value), count);
  }
}

bool BlockRows::hasWork(const RowStatement &statement) {
  return llvm::any_of(statement.operations, [&](Operation *op) {
    Value value = op->getResult(0);
    return isa<mt::ReduceOp>(op) || innerCount(value) == 1 || targets.contains(value);
  });
}

LogicalResult BlockRows::run(ArrayRef<Operation *> operations, bool store) {
  SmallVector<Operation *> inStatements(operations);
  if (firstColumn)
    llvm::erase_if(inStatements, isFirstPixel);
  std::vector<RowStatement> statements = splitStatements(inStatements);
  if (store)
    direct = directResults(kernel, statements);
  if (kernel.kind == mt::KernelKind::rows)
    chooseComputed(statements);
  for (const RowStatement &statement : statements) {
    allocate(statement);
    if (!hasWork(statement))
      continue;
    statement.loop ? runLoop(statement) : runMove(statement.operations.front());
    for (Operation *op : statement.operations)
      if (Value pointer = targets.lookup(op->getResult(0)))
        bind(op->getResult(0), pointer);
    kernel.barrier();
  }
  if (!store)
    return status();
  for (auto [i, yield] : llvm::enumerate(kernel.yields())) {
    auto it = direct.find(resolve(yield));
    if (it != direct.end() && it->second == static_cast<int64_t>(i))
      continue;
    Value to = results[i];
    if (innerCount(yield) == 1) {
      Value scalar = scalarOf(yield);
      kernel.firstThread([&] { emit.store(elementOf(yield), scalar, to); });
    } else {
      int64_t count = innerCount(yield), vectorWidth = count % elementsPerThread == 0 ? elementsPerThread : 1;
      emit.loop(emit.mul(kernel.thread, vectorWidth), emit.integer(count), vectorWidth * kernel.groupThreads(),
                [&](Value first) { storeYields(yield, to, first, vectorWidth); });
    }
  }
  return status();
}

// Emits one element of every operation of a loop that is needed. `sums` are the accumulators of its reductions, in
// order.
void BlockRows::runElement(const RowStatement &statement, Position position, MutableArrayRef<Value> sums,
                           SmallVectorImpl<BlockStore> &stores) {
  VectorBody body = bodyAt(position);
  size_t sum = 0;
  for (Operation *op : statement.operations) {
    if (auto reduce = dyn_cast<mt::ReduceOp>(op)) {
      Value &running = sums[sum++];
      running = combine(emit, reduce.getKind(), running, body.get(reduce.getOperand()));
      continue;
    }
    Value value = op->getResult(0), to = targets.lookup(value);
    if (statement.count == 1)
      scalars[value] = body.get(value);
    if (to)
      stores.push_back({elementOf(value), body.get(value), emit.address(to, elementOf(value), position.index)});
  }
}

static SmallVector<mt::ReduceOp> reductionsOf(const RowStatement &statement) {
  SmallVector<mt::ReduceOp> reductions;
  for (Operation *op : statement.operations)
    if (auto reduce = dyn_cast<mt::ReduceOp>(op))
      reductions.push_back(reduce);
  return reductions;
}

// Processes element `inner` of every `stride`-th period from `first` on. Sums over the first axes start at their
// initial value and are passed to `finish`; sums of all elements continue from `sums` and are returned.
Emitter::Values BlockRows::runInner(const RowStatement &statement, Value inner, Value first, int64_t stride,
                                    ValueRange sums, llvm::function_ref<void(mt::ReduceOp, Value)> finish) {
  Emitter::Values start, full;
  size_t next = 0;
  for (mt::ReduceOp reduce : reductionsOf(statement))
    start.push_back(leadingPeriod(reduce) ? identityOf(emit, reduce) : sums[next++]);
  Emitter::Values ends = emit.loop(
      first, emit.integer(statement.count / statement.period), stride, start, [&](Value pixel, ValueRange running) {
        Emitter::Values values(running);
        Value index = emit.add(emit.mul(pixel, statement.period), inner);
        SmallVector<BlockStore> stores;
        runElement(statement, {index, statement.count, inner, statement.period}, values, stores);
        storeAdjacent(stores, 1);
        return values;
      });
  for (auto [reduce, end] : llvm::zip_equal(reductionsOf(statement), ends))
    if (leadingPeriod(reduce))
      finish(reduce, end);
    else
      full.push_back(end);
  return full;
}

// Each thread has elements of the period. If there are more threads, groups of them share the periods, and the groups'
// sums over the first axes are reduced by halves.
Emitter::Values BlockRows::runPeriods(const RowStatement &statement, ValueRange sums) {
  int64_t period = statement.period, threads = kernel.gpu.threads, periods = statement.count / period;
  int64_t groups = std::min(llvm::bit_ceil(static_cast<uint64_t>(periods)),
                            llvm::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, threads / period))));
  auto target = [&](mt::ReduceOp reduce, Value inner) {
    return emit.address(targets.lookup(reduce.getResult()), elementOf(reduce.getResult()), inner);
  };
  if (groups == 1)
    return kernel.forThreads(period, sums, [&](Value inner, ValueRange carried) {
      return runInner(statement, inner, emit.integer(0), 1, carried,
                      [&](mt::ReduceOp reduce, Value sum) { emit.store(sum, target(reduce, inner)); });
    });
  Value group = emit.div(kernel.thread, emit.integer(period)), inner = emit.rem(kernel.thread, emit.integer(period));
  Value first = arith::SelectOp::create(emit, emit.less(group, emit.integer(groups)), group, emit.integer(periods));
  SmallVector<std::pair<mt::ReduceOp, Value>> lines; // one sum per thread
  Emitter::Values full = runInner(statement, inner, first, groups, sums, [&](mt::ReduceOp reduce, Value sum) {
    Type element = elementOf(reduce.getResult());
    Value line = emit.address(kernel.allocateShared(element, threads), element, kernel.thread);
    emit.store(sum, line);
    lines.push_back({reduce, line});
  });
  for (int64_t half = groups / 2; half >= 1 && !lines.empty(); half /= 2) {
    kernel.barrier();
    emit.when(emit.less(kernel.thread, emit.integer(half * period)), [&] {
      for (auto [reduce, low] : lines) {
        Type element = elementOf(reduce.getResult());
        Value high = emit.address(low, element, half * period);
        emit.store(combine(emit, reduce.getKind(), emit.load(element, low), emit.load(element, high)), low);
      }
    });
  }
  emit.when(emit.less(kernel.thread, emit.integer(period)), [&] {
    for (auto [reduce, line] : lines)
      emit.store(emit.load(elementOf(reduce.getResult()), line), target(reduce, inner));
  });
  return full;
}

// Each thread processes adjacent elements, whose operands it loads at once, and whose results it stores at once.
Emitter::Values BlockRows::runElements(const RowStatement &statement, ValueRange sums) {
  int64_t vectorWidth = statement.count % elementsPerThread == 0 ? elementsPerThread : 1;
  return emit.loop(emit.mul(kernel.thread, vectorWidth), emit.integer(statement.count),
                   vectorWidth * kernel.groupThreads(), sums, [&](Value first, ValueRange carried) {
                     Emitter::Values next(carried);
                     SmallVector<BlockStore> stores;
                     Chunk chunk = chunkAt(first, vectorWidth);
                     for (int64_t lane = 0; lane < vectorWidth; ++lane) {
                       Position position{emit.add(first, lane), statement.count};
                       if (vectorWidth > 1) {
                         position.chunk = &chunk;
                         position.lane = lane;
                       }
                       runElement(statement, position, next, stores);
                     }
                     storeAdjacent(stores, vectorWidth);
                     return next;
                   });
}

void BlockRows::runLoop(const RowStatement &statement) {
  SmallVector<mt::ReduceOp> reductions;
  Emitter::Values sums;
  for (Operation *op : statement.operations)
    if (auto reduce = dyn_cast<mt::ReduceOp>(op); reduce && !leadingPeriod(op)) {
      reductions.push_back(reduce);
      sums.push_back(identityOf(emit, reduce));
    }
  // Single numbers that the loop reads are loaded before it.
  for (Operation *op : statement.operations)
    for (Value operand : op->getOperands()) {
      Value root = resolve(operand);
      if (root.getDefiningOp() && llvm::is_contained(statement.operations, root.getDefiningOp()))
        continue;
      if (innerCount(root) == 1 && !root.getDefiningOp<mt::ConstantOp>())
        scalars[root] = scalarOf(root);
    }
  if (statement.count == 1) {
    SmallVector<BlockStore> stores;
    runElement(statement, {emit.integer(0), 1}, sums, stores);
    if (!stores.empty()) {
      // A result's buffer may be the buffer of an operand that other threads still read.
      kernel.barrier();
      kernel.firstThread([&] { storeAdjacent(stores, 1); });
    }
  } else if (firstColumn) {
    runColumns(statement);
  } else {
    sums = statement.period ? runPeriods(statement, sums) : runElements(statement, sums);
    if (!reductions.empty())
      sums = fold(reductions, sums);
  }
  for (auto [reduce, sum] : llvm::zip_equal(reductions, sums))
    define(reduce.getResult(), sum);
}

// Each thread computes elements of the result.
void BlockRows::runMove(Operation *op) {
  Value value = op->getResult(0), to = targets.lookup(value);
  auto element = [&](Value index) {
    if (Value found = moved(op, index))
      return found;
    unknown(value);
    return emit.zeros(elementOf(value));
  };
  if (auto argmax = dyn_cast<mt::ArgmaxOp>(op); argmax && innerCount(value) == 1)
    return define(value, search(argmax));
  if (innerCount(value) == 1)
    return define(value, element(emit.integer(0)));
  kernel.forThreads(innerCount(value), [&](Value index) {
    emit.store(elementOf(value), element(index), emit.address(to, elementOf(value), index));
  });
}

static LogicalResult emitRow(BlockKernel &kernel, BlockRows &rows, Value row) {
  Emitter &emit = kernel.emit;
  SmallVector<Value> results;
  rows.bindRow(row);
  for (auto [i, yield] : llvm::enumerate(kernel.yields()))
    results.push_back(emit.address(kernel.result(i), elementOf(yield), emit.mul(row, innerCount(yield))));
  if (failed(rows.run(operationsOf(kernel, /*split=*/false), /*store=*/false)))
    return failure();
  rows.bindResults(results);
  return rows.run(operationsOf(kernel, /*split=*/true), /*store=*/true);
}

// Each warp has a row (or line) of its own; in the last block some warps may have none. A tail has the warps of its
// head.
static LogicalResult emitWarpRows(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  kernel.splitByWarp();
  Value row = emit.add(emit.mul(kernel.tile, kernel.gpu.threads / warpThreads), kernel.warp);
  LogicalResult status = success();
  emit.when(emit.less(row, emit.mul(kernel.rows(), kernel.form.lines)), [&] {
    BlockRows rows(kernel);
    status = emitRow(kernel, rows, row);
  });
  return status;
}

LogicalResult mtc::emitBlockRows(BlockKernel &kernel) {
  if (isElements(kernel.op))
    return emitBlockElements(kernel);
  if (isWarpRows(kernel.op))
    return emitWarpRows(kernel);
  Emitter &emit = kernel.emit;
  BlockRows rows(kernel);
  Value row = kernel.tile;
  if (int64_t columns = columnsOf(kernel.op)) {
    int64_t vectorWidth = columnsPerBlock(columns);
    Value parts = emit.integer(columns / vectorWidth);
    rows.setColumns(emit.mul(emit.rem(row, parts), vectorWidth), vectorWidth);
    row = emit.div(row, parts);
  }
  return emitRow(kernel, rows, row);
}

LogicalResult mtc::emitBlockSingle(BlockKernel &kernel) {
  if (isElements(kernel.op))
    return emitBlockElements(kernel);
  BlockRows whole(kernel);
  SmallVector<Value> results;
  for (auto [i, argument] : llvm::enumerate(kernel.body().getArguments()))
    whole.bind(argument, kernel.argument(i));
  for (int64_t i = 0, e = kernel.yields().size(); i < e; ++i)
    results.push_back(kernel.result(i));
  whole.bindResults(results);
  return whole.run(operationsOf(kernel, /*split=*/false), /*store=*/true);
}
