// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/Lines.h"
#include "compiler/codegen/gpu/BlockRows.h"

using namespace mlir;
using namespace mtc;

Value BlockRows::placeOf(Value value) {
  value = resolve(value);
  if (Value place = places.lookup(value))
    return place;
  if (auto constant = value.getDefiningOp<mt::ConstantOp>())
    return constantPlace(emit, constant);
  Value place = kernel.share(elementOf(value), 1);
  kernel.firstThread([&] { emit.store(scalars.lookup(value), place); });
  kernel.barrier();
  return places[value] = place;
}

Value BlockRows::scalarOf(Value value) {
  value = resolve(value);
  if (Value scalar = scalars.lookup(value))
    return scalar;
  if (auto constant = value.getDefiningOp<mt::ConstantOp>())
    return constantScalar(emit, constant);
  return emit.load(elementOf(value), placeOf(value));
}

// A value of one element that all threads have; a result's buffer may be an operand's that others still read.
void BlockRows::define(Value value, Value scalar) {
  scalars[value] = scalar;
  if (Value place = places.lookup(value)) {
    kernel.barrier();
    kernel.firstThread([&] { emit.store(scalar, place); });
  }
}

// Places for the values of step `at` that are read after it.
void BlockRows::allocate(ArrayRef<RowStep> steps, size_t at) {
  for (Operation *op : steps[at].operations) {
    Value value = op->getResult(0);
    if (places.lookup(value))
      continue;
    if (auto it = direct.find(value); it != direct.end()) {
      places[value] = results[it->second];
      continue;
    }
    int64_t count = innerCount(value);
    if (count > 1 && (!steps[at].loop || isReadOutside(steps[at], value)))
      places[value] = kernel.share(elementOf(value), count);
  }
}

LogicalResult BlockRows::run(ArrayRef<Operation *> operations, bool store) {
  std::vector<RowStep> steps = planSteps(operations);
  if (store)
    direct = directResults(kernel, steps);
  for (auto [at, step] : llvm::enumerate(steps)) {
    allocate(steps, at);
    if (failed(step.loop ? runLoop(step) : runMove(step.operations.front())))
      return failure();
    kernel.barrier();
  }
  if (!store)
    return success();
  for (auto [i, yield] : llvm::enumerate(kernel.yields())) {
    auto it = direct.find(resolve(yield));
    if (it != direct.end() && it->second == static_cast<int64_t>(i))
      continue;
    Type element = elementOf(yield);
    int64_t count = innerCount(yield);
    Value to = results[i];
    if (count == 1) {
      Value scalar = scalarOf(yield);
      kernel.firstThread([&] { emit.store(scalar, to); });
      continue;
    }
    Value from = placeOf(yield);
    kernel.forThreads(count, [&](Value index) {
      emit.store(emit.load(element, emit.address(from, element, index)), emit.address(to, element, index));
    });
  }
  return success();
}

Value BlockRows::elementOfIota(mt::IotaOp iota, Value index) {
  Value root = iota.getResult(), position = row;
  if (!isSplit(root)) {
    int64_t inner = 1, size = tensorOf(root).getDimSize(iota.getDim());
    for (int64_t dim : tensorOf(root).getShape().drop_front(iota.getDim() + 1))
      inner *= dim;
    position = emit.rem(emit.div(index, emit.integer(inner)), emit.integer(size));
  }
  Value number = arith::TruncIOp::create(emit, emit.getI32Type(), position);
  return elementOf(root).isF32() ? Value(arith::SIToFPOp::create(emit, emit.getF32Type(), number)) : number;
}

// An element of a value that a loop does not compute from its operands' elements; null for any other.
Value BlockRows::sourceOf(const RowStep &step, Place place, Value value) {
  Value root = resolve(value);
  Operation *op = root.getDefiningOp();
  bool inside = op && llvm::is_contained(step.operations, op);
  if (auto iota = dyn_cast_or_null<mt::IotaOp>(op); iota && inside)
    return elementOfIota(iota, place.index);
  if (auto random = dyn_cast_or_null<mt::RandomUniformOp>(op); random && inside) {
    Value element = isSplit(root) ? emit.add(emit.mul(row, step.count), place.index) : place.index;
    return emitUniform(kernel, random, element, random.getStep() ? scalarOf(random.getStep()) : Value(),
                       /*scalar=*/true);
  }
  if (inside)
    return Value();
  if (innerCount(root) == 1)
    return scalarOf(root);
  if (auto constant = dyn_cast_or_null<mt::ConstantOp>(op);
      constant && cast<DenseElementsAttr>(constant.getValue()).isSplat())
    return Value();
  if (step.period && periodOf(root) == step.period && !places.lookup(root))
    return emit.load(elementOf(root), emit.address(placeOf(op->getOperand(0)), elementOf(root), place.inner));
  return emit.load(elementOf(root), emit.address(placeOf(root), elementOf(root), place.index));
}

// One element of every operation of a loop. `sums` holds the accumulators of its reductions, in order.
LogicalResult BlockRows::runElement(const RowStep &step, Place place, SmallVectorImpl<Value> &sums) {
  LaneBody body(kernel, /*scalar=*/true, [&](Value value) { return sourceOf(step, place, value); });
  size_t sum = 0;
  SmallVector<std::pair<Value, Value>> stores;
  for (Operation *op : step.operations) {
    if (auto reduce = dyn_cast<mt::ReduceOp>(op)) {
      Value &running = sums[sum++];
      running = combine(emit, reduce.getKind(), running, body.get(reduce.getOperand()));
      continue;
    }
    Value value = op->getResult(0), computed = body.get(value);
    if (!computed)
      return op->emitError("expected an operation that kernels of rows can compute");
    if (step.count == 1)
      scalars[value] = computed;
    if (Value to = places.lookup(value))
      stores.push_back({computed, emit.address(to, elementOf(value), place.index)});
  }
  if (stores.empty())
    return success();
  auto storeAll = [&] {
    for (auto [value, to] : stores)
      emit.store(value, to);
  };
  if (step.count > 1)
    return storeAll(), success();
  // A result's buffer may be an operand's, which other threads still read.
  kernel.barrier();
  kernel.firstThread(storeAll);
  return success();
}

// A thread takes places of the period, and of each every pixel: sums over the pixels are its own.
Emitter::Values BlockRows::runPeriods(const RowStep &step, ValueRange sums, LogicalResult &status) {
  SmallVector<mt::ReduceOp> reductions;
  for (Operation *op : step.operations)
    if (auto reduce = dyn_cast<mt::ReduceOp>(op))
      reductions.push_back(reduce);
  return kernel.forThreads(step.period, sums, [&](Value inner, ValueRange carried) {
    Emitter::Values start;
    size_t next = 0;
    for (mt::ReduceOp reduce : reductions)
      start.push_back(leadingPeriod(reduce) ? identityOf(emit, reduce.getKind()) : carried[next++]);
    Emitter::Values ends = emit.loop(
        emit.integer(0), emit.integer(step.count / step.period), 1, start, [&](Value pixel, ValueRange running) {
          Emitter::Values values(running);
          if (failed(runElement(step, {emit.add(emit.mul(pixel, step.period), inner), inner}, values)))
            status = failure();
          return values;
        });
    Emitter::Values full;
    for (auto [reduce, end] : llvm::zip_equal(reductions, ends))
      if (leadingPeriod(reduce))
        emit.store(end, emit.address(placeOf(reduce.getResult()), emit.getF32Type(), inner));
      else
        full.push_back(end);
    return full;
  });
}

Emitter::Values BlockRows::fold(ArrayRef<mt::ReduceOp> reductions, ValueRange sums) {
  Type f32 = emit.getF32Type();
  SmallVector<Value> lines;
  for (Value sum : sums) {
    lines.push_back(kernel.share(f32, kernel.gpu.threads));
    emit.store(sum, emit.address(lines.back(), f32, kernel.thread));
  }
  for (int64_t half = kernel.gpu.threads / 2; half >= 1; half /= 2) {
    kernel.barrier();
    emit.when(emit.less(kernel.thread, emit.integer(half)), [&] {
      for (auto [i, line] : llvm::enumerate(lines)) {
        mt::ReduceOp reduce = reductions[i];
        Value low = emit.address(line, f32, kernel.thread), high = emit.address(low, f32, half);
        emit.store(combine(emit, reduce.getKind(), emit.load(f32, low), emit.load(f32, high)), low);
      }
    });
  }
  kernel.barrier();
  Emitter::Values folded;
  for (Value line : lines)
    folded.push_back(emit.load(f32, line));
  return folded;
}

LogicalResult BlockRows::runLoop(const RowStep &step) {
  SmallVector<mt::ReduceOp> reductions;
  Emitter::Values sums;
  for (Operation *op : step.operations)
    if (auto reduce = dyn_cast<mt::ReduceOp>(op); reduce && !leadingPeriod(op)) {
      reductions.push_back(reduce);
      sums.push_back(identityOf(emit, reduce.getKind()));
    }
  // Numbers that the loop reads are loaded before it; places are made by all threads together.
  for (Operation *op : step.operations)
    for (Value operand : op->getOperands()) {
      Value root = resolve(operand);
      if (root.getDefiningOp() && llvm::is_contained(step.operations, root.getDefiningOp()))
        continue;
      if (innerCount(root) == 1 && !root.getDefiningOp<mt::ConstantOp>())
        scalars[root] = scalarOf(root);
    }
  LogicalResult status = success();
  if (step.count == 1) {
    status = runElement(step, {emit.integer(0), {}}, sums);
  } else {
    if (step.period)
      sums = runPeriods(step, sums, status);
    else
      sums = kernel.forThreads(step.count, sums, [&](Value index, ValueRange carried) {
        Emitter::Values next(carried);
        if (failed(runElement(step, {index, {}}, next)))
          status = failure();
        return next;
      });
    if (!reductions.empty() && succeeded(status))
      sums = fold(reductions, sums);
  }
  for (auto [reduce, sum] : llvm::zip_equal(reductions, sums))
    define(reduce.getResult(), sum);
  return status;
}

LogicalResult mtc::emitBlockRows(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  BlockRows rows(kernel);
  Value row = kernel.tile;
  auto at = [&](Value base, Value value) {
    return emit.address(base, elementOf(value), emit.mul(row, innerCount(value)));
  };
  SmallVector<Value> results;
  for (auto [i, argument] : llvm::enumerate(kernel.body().getArguments()))
    rows.bind(argument, isSplit(argument) ? at(kernel.argument(i), argument) : kernel.argument(i));
  for (auto [i, yield] : llvm::enumerate(kernel.yields()))
    results.push_back(at(kernel.result(i), yield));
  if (failed(rows.run(operationsOf(kernel, /*split=*/false), /*store=*/false)))
    return failure();
  rows.bindResults(results);
  rows.setRow(emit.add(kernel.firstRow(), row));
  return rows.run(operationsOf(kernel, /*split=*/true), /*store=*/true);
}

LogicalResult mtc::emitBlockWhole(BlockKernel &kernel) {
  BlockRows whole(kernel);
  SmallVector<Value> results;
  for (auto [i, argument] : llvm::enumerate(kernel.body().getArguments()))
    whole.bind(argument, kernel.argument(i));
  for (int64_t i = 0, e = kernel.yields().size(); i < e; ++i)
    results.push_back(kernel.result(i));
  whole.bindResults(results);
  return whole.run(operationsOf(kernel, /*split=*/false), /*store=*/true);
}
