// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cpu/Rows.h"
#include "compiler/codegen/common/Rules.h"
#include "compiler/codegen/cpu/Kernels.h"
#include "compiler/codegen/cpu/Lines.h"
#include "dialects/mt/KernelKinds.h"
#include "dialects/mt/Types.h"

using namespace mlir;
using namespace mtc;

Value RowEmitter::pointerOf(Value value) {
  value = resolve(value);
  if (Value pointer = pointers.lookup(value))
    return pointer;
  if (auto constant = value.getDefiningOp<mt::ConstantOp>())
    return constantPointer(emit, constant);
  Value pointer = emit.array(elementOf(value), 1);
  emit.store(elementOf(value), scalars.lookup(value), pointer);
  return pointers[value] = pointer;
}

Value RowEmitter::scalarOf(Value value) {
  value = resolve(value);
  if (Value scalar = scalars.lookup(value))
    return scalar;
  if (auto constant = value.getDefiningOp<mt::ConstantOp>())
    return constantScalar(emit, constant);
  return emit.load(elementOf(value), pointerOf(value));
}

void RowEmitter::define(Value value, Value scalar) {
  scalars[value] = scalar;
  if (Value pointer = pointers.lookup(value))
    emit.store(elementOf(value), scalar, pointer);
}

// Allocates memory for the values of statement `at` that are read after it.
void RowEmitter::allocate(ArrayRef<RowStatement> statements, size_t at) {
  for (Operation *op : statements[at].operations) {
    Value value = op->getResult(0);
    if (pointers.lookup(value))
      continue;
    if (auto it = direct.find(value); it != direct.end()) {
      pointers[value] = results[it->second];
      continue;
    }
    int64_t count = innerCount(value);
    // A loop leaves a single element in a register, an operation that moves data leaves it in memory.
    if (count == 1 && statements[at].loop)
      continue;
    bool alone = !statements[at].loop && statements[at].operations.size() == 1;
    if (!alone && !isReadOutside(statements[at], value))
      continue;
    temporaries += count * emit.bytes(elementOf(value));
    pointers[value] = temporaries > scratchLimit ? Value() : emit.array(elementOf(value), count);
  }
}

LogicalResult RowEmitter::tooLarge() {
  return kernel.op.emitError("expected at most ")
         << scratchLimit << " bytes of temporaries in a kernel of kind rows or single, found " << temporaries;
}

LogicalResult RowEmitter::run(ArrayRef<Operation *> operations, bool store) {
  std::vector<RowStatement> statements = splitStatements(operations);
  if (store)
    direct = directResults(kernel, statements);
  size_t copied = 0; // statements from here on whose code a loop over buffers is
  for (auto [at, statement] : llvm::enumerate(statements)) {
    allocate(statements, at);
    if (temporaries > scratchLimit)
      return tooLarge();
    if (!copied)
      copied = copyToBuffers(ArrayRef(statements).drop_front(at));
    if (copied) {
      --copied;
      continue;
    }
    Operation *first = statement.operations.front();
    if (failed(statement.loop             ? runLoop(statement)
               : isa<mt::Conv2DOp>(first) ? runConvolution(statement)
                                          : runMove(first)))
      return failure();
    if (temporaries > scratchLimit)
      return tooLarge();
  }
  if (!store)
    return success();
  for (auto [i, yield] : llvm::enumerate(kernel.yields())) {
    auto it = direct.find(resolve(yield));
    if (it == direct.end() || it->second != static_cast<int64_t>(i))
      copyLine(yield, results[i]);
  }
  return success();
}

Value RowEmitter::lanesOf(mt::IotaOp iota, const Chunk &chunk) {
  Value root = iota.getResult();
  if (isSplit(root)) { // index of the sample in the global batch
    Value number = arith::TruncIOp::create(emit, emit.getI32Type(), row);
    if (mt::isReal(elementOf(root)))
      number = arith::SIToFPOp::create(emit, emit.realType(), number);
    return chunk.scalar ? number : emit.splat(number);
  }
  int64_t inner = 1, size = tensorOf(root).getDimSize(iota.getDim());
  for (int64_t dim : tensorOf(root).getShape().drop_front(iota.getDim() + 1))
    inner *= dim;
  Value position = emit.rem(emit.div(chunk.index, emit.integer(inner)), emit.integer(size));
  Value number = arith::TruncIOp::create(emit, emit.getI32Type(), position);
  if (!chunk.scalar) {
    Value flat = emit.splat(arith::TruncIOp::create(emit, emit.getI32Type(), chunk.index));
    number = arith::AddIOp::create(emit, flat, emit.laneNumbers());
    number = arith::DivUIOp::create(emit, number, emit.splatConstant(emit.getI32IntegerAttr(inner)));
    number = arith::RemUIOp::create(emit, number, emit.splatConstant(emit.getI32IntegerAttr(size)));
  }
  if (mt::isReal(elementOf(root)))
    number =
        arith::SIToFPOp::create(emit, chunk.scalar ? Type(emit.realType()) : emit.vectorOf(emit.realType()), number);
  return number;
}

// The vector of a value that a loop does not compute from vectors of its operands; null for any other value.
Value RowEmitter::sourceOf(const RowStatement &statement, const Chunk &chunk, Value value) {
  Value root = resolve(value);
  Operation *op = root.getDefiningOp();
  bool inside = op && llvm::is_contained(statement.operations, op);
  if (auto iota = dyn_cast_or_null<mt::IotaOp>(op); iota && inside)
    return lanesOf(iota, chunk);
  if (auto random = dyn_cast_or_null<mt::RandomUniformOp>(op); random && inside) {
    Value element = chunk.index;
    if (isSplit(root))
      element = emit.add(emit.mul(row, statement.count), chunk.index);
    Value numbers = emitUniform(kernel, random, element, [&](Value operand) { return scalarOf(operand); });
    return chunk.scalar ? emit.extract(numbers, 0) : numbers;
  }
  if (inside)
    return Value();
  if (innerCount(root) == 1) {
    Value known = chunk.scalar ? scalarOf(root) : splats.lookup(root);
    return chunk.scalar || !known ? known : emit.first(known);
  }
  if (auto constant = dyn_cast_or_null<mt::ConstantOp>(op);
      constant && cast<DenseElementsAttr>(constant.getValue()).isSplat())
    return Value();
  if (statement.period && periodOf(root) == statement.period && !pointers.lookup(root)) {
    Value repeated = op->getOperand(0), none, &held = chunk.held ? chunk.held->operands[resolve(repeated)] : none;
    if (!held)
      held =
          emit.loadLanes(elementOf(root), emit.address(pointerOf(repeated), elementOf(root), chunk.inner), chunk.mask);
    return held;
  }
  return emit.loadLanes(elementOf(root), emit.address(pointerOf(root), elementOf(root), chunk.index), chunk.mask);
}

// Emits 16 elements (or the scalar) of every operation of a loop. `sums` are the accumulators of its reductions to one
// element.
LogicalResult RowEmitter::runChunk(const RowStatement &statement, const Chunk &chunk, SmallVectorImpl<Value> &sums) {
  VectorBody body(kernel, chunk.scalar, [&](Value value) { return sourceOf(statement, chunk, value); });
  size_t sum = 0;
  SmallVector<std::tuple<Type, Value, Value>> stores;
  for (Operation *op : statement.operations) {
    if (auto reduce = dyn_cast<mt::ReduceOp>(op)) {
      Value lanesOf = body.get(reduce.getOperand());
      if (leadingPeriod(op)) {
        addToLines(reduce, chunk, lanesOf);
        continue;
      }
      Value &running = sums[sum++];
      Value next = combine(emit, reduce.getKind(), running, lanesOf);
      running = chunk.mask ? Value(arith::SelectOp::create(emit, chunk.mask, next, running)) : next;
      continue;
    }
    Value value = op->getResult(0), computed = body.get(value);
    if (!computed)
      return op->emitError("expected an operation that kernels of rows can compute");
    if (chunk.scalar)
      scalars[value] = computed;
    if (Value pointer = pointers.lookup(value))
      stores.push_back({elementOf(value), computed, emit.address(pointer, elementOf(value), chunk.index)});
  }
  for (auto [element, value, pointer] : stores)
    chunk.scalar ? emit.store(element, value, pointer) : emit.storeLanes(element, value, pointer, chunk.mask);
  return success();
}

// Emits the last `count` elements of a statement. Sums of all elements, and random numbers, are of 16 elements.
void RowEmitter::forTail(const RowStatement &statement, int64_t count, llvm::function_ref<void(Value mask)> body) {
  bool whole = llvm::any_of(statement.operations, [](Operation *op) {
    return isa<mt::RandomUniformOp>(op) || (isa<mt::ReduceOp>(op) && !leadingPeriod(op));
  });
  if (whole)
    return body(emit.maskBelow(count));
  emit.tail(count, body);
}

LogicalResult RowEmitter::runLoop(const RowStatement &statement) {
  SmallVector<mt::ReduceOp> reductions;
  for (Operation *op : statement.operations)
    if (auto reduce = dyn_cast<mt::ReduceOp>(op); reduce && !leadingPeriod(op))
      reductions.push_back(reduce);
  bool scalar = statement.count == 1;
  Emitter::Values sums;
  for (mt::ReduceOp reduce : reductions)
    sums.push_back(scalar ? identityOf(emit, reduce) : emit.splat(identityOf(emit, reduce)));
  LogicalResult result = success();
  splats.clear();
  if (!scalar)
    for (Operation *op : statement.operations)
      for (Value operand : op->getOperands()) {
        Value root = resolve(operand);
        bool inside = root.getDefiningOp() && llvm::is_contained(statement.operations, root.getDefiningOp());
        if (!inside && innerCount(root) == 1 && !splats.lookup(root))
          splats[root] = emit.splat(scalarOf(root));
      }
  if (scalar) {
    result = runChunk(statement, {emit.integer(0), {}, {}, {}, true}, sums);
  } else if (statement.period) {
    result = runPeriods(statement, sums);
  } else {
    int64_t whole = statement.count / lanes * lanes;
    if (whole > 0)
      sums = emit.loop(emit.integer(0), emit.integer(whole), lanes, sums, [&](Value index, ValueRange carried) {
        Emitter::Values next(carried);
        if (failed(runChunk(statement, {index, {}, {}, {}, false}, next)))
          result = failure();
        return next;
      });
    if (whole < statement.count && succeeded(result))
      forTail(statement, statement.count - whole,
              [&](Value mask) { result = runChunk(statement, {emit.integer(whole), mask, {}, {}, false}, sums); });
  }
  for (auto [reduce, sum] : llvm::zip_equal(reductions, sums)) {
    if (!scalar)
      sum = emit.fold(sum, [&](Value low, Value high) { return combine(emit, reduce.getKind(), low, high); });
    define(reduce.getResult(), sum);
  }
  return result;
}

bool mtc::isLine(plan::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  for (Value yield : body.getTerminator()->getOperands())
    if (!isSplit(yield))
      return false;
  for (Operation &op : body.without_terminator()) {
    auto random = dyn_cast<mt::RandomUniformOp>(op);
    bool known = mt::isPointwise(op) || (random && !random.getStep() && isSplit(random.getResult()));
    if (!known || innerCount(op.getResult(0)) != 1)
      return false;
  }
  return llvm::all_of(body.getArguments(), [](Value argument) { return innerCount(argument) == 1; });
}

// Calls `body` for each row of the tiles, or for each line of their rows; lines are numbered over all rows.
static void forRows(Kernel &kernel, llvm::function_ref<void(Value row)> body) {
  Emitter &emit = kernel.emit;
  const LineForm &form = kernel.form;
  if (form.lines == 1) {
    int64_t tile = kernel.grid.rowsPerTile;
    Value from = emit.mul(kernel.tileBegin, tile), to = emit.min(emit.mul(kernel.tileEnd, tile), kernel.rows());
    return emit.loop(from, to, 1, body);
  }
  int64_t most = linesOfTile(form);
  emit.loop(kernel.tileBegin, kernel.tileEnd, 1, [&](Value tile) {
    Value first = emit.mul(emit.div(tile, emit.integer(kernel.grid.innerTiles)), form.lines);
    Value line = emit.mul(emit.rem(tile, emit.integer(kernel.grid.innerTiles)), most);
    Value end = emit.min(emit.add(line, most), emit.integer(form.lines));
    emit.loop(emit.add(first, line), emit.add(first, end), 1, body);
  });
}

LogicalResult mtc::emitRows(Kernel &kernel) {
  Emitter &emit = kernel.emit;
  if (kernel.form.lines == 1 && isLine(kernel.op)) {
    int64_t tile = kernel.grid.rowsPerTile;
    return emitLine(kernel, emit.mul(kernel.tileBegin, tile), emit.min(emit.mul(kernel.tileEnd, tile), kernel.rows()),
                    [](Value value) { return !isSplit(value); });
  }
  RowEmitter rows(kernel);
  SmallVector<Value> arguments, results;
  for (auto [i, argument] : llvm::enumerate(kernel.body().getArguments())) {
    arguments.push_back(kernel.argumentBuffer(i));
    rows.bind(argument, arguments.back());
  }
  for (int64_t i = 0, e = kernel.yields().size(); i < e; ++i)
    results.push_back(kernel.resultBuffer(i));
  Value first = emit.mul(kernel.firstRow(), kernel.form.lines);
  if (failed(rows.run(operationsOf(kernel, /*split=*/false), /*store=*/false)))
    return failure();
  SmallVector<Operation *> statements = operationsOf(kernel, /*split=*/true);
  LogicalResult result = rows.prepare(statements);
  if (failed(result))
    return failure();
  forRows(kernel, [&](Value row) {
    auto at = [&](Value base, Value value, Value index) {
      return emit.address(base, elementOf(value), emit.mul(index, innerCount(value)));
    };
    for (auto [i, argument] : llvm::enumerate(kernel.body().getArguments()))
      if (isSplit(argument)) {
        Value index = kernel.form.lines == 1 ? row : partAt(emit, kernel.form.arguments[i], row);
        rows.bind(argument, at(arguments[i], argument, index));
      }
    SmallVector<Value> pointers;
    for (auto [yield, base] : llvm::zip_equal(kernel.yields(), results))
      pointers.push_back(at(base, yield, row));
    rows.bindResults(pointers);
    rows.setRow(emit.add(first, row), kernel.form.lines == 1 ? row : Value());
    result = rows.run(statements, /*store=*/true);
  });
  return result;
}

LogicalResult mtc::emitSingle(Kernel &kernel) {
  Emitter &emit = kernel.emit;
  LogicalResult result = success();
  emit.when(emit.less(kernel.tileBegin, kernel.tileEnd), [&] {
    RowEmitter whole(kernel);
    SmallVector<Value> pointers;
    for (auto [i, argument] : llvm::enumerate(kernel.body().getArguments()))
      whole.bind(argument, kernel.argumentBuffer(i));
    for (int64_t i = 0, e = kernel.yields().size(); i < e; ++i)
      pointers.push_back(kernel.resultBuffer(i));
    whole.bindResults(pointers);
    result = whole.run(operationsOf(kernel, /*split=*/false), /*store=*/true);
  });
  return result;
}
