// SPDX-License-Identifier: Apache-2.0
//
// The operations of a row that are more than a loop over flat elements.
#include "compiler/codegen/common/Reduction.h"
#include "compiler/codegen/cpu/Lines.h"
#include "compiler/codegen/cpu/Rows.h"
#include "compiler/codegen/cpu/Tile.h"

using namespace mlir;
using namespace mtc;

void mtc::forChunks(Emitter &emit, int64_t count, llvm::function_ref<void(Value index, Value mask)> each) {
  int64_t whole = count / lanes * lanes;
  if (whole > 0)
    emit.loop(emit.integer(0), emit.integer(whole), lanes, [&](Value index) { each(index, Value()); });
  if (whole < count)
    each(emit.integer(whole), emit.maskBelow(count - whole));
}

void RowEmitter::copyLine(Value value, Value to) {
  Type element = emit.stored(elementOf(value));
  int64_t count = innerCount(value);
  if (count == 1)
    return emit.store(elementOf(value), scalarOf(value), to);
  Value from = placeOf(value);
  forChunks(emit, count, [&](Value index, Value mask) {
    emit.storeLanes(emit.loadLanes(element, emit.address(from, element, index), mask), emit.address(to, element, index),
                    mask);
  });
}

// Copies the elements of `value` (row major) from an address with these strides, in elements.
void RowEmitter::move(Value value, Value from, ArrayRef<int64_t> strides) {
  ArrayRef<int64_t> shape = innerShape(value);
  Type element = emit.stored(elementOf(value));
  Value to = placeOf(value);
  std::function<void(size_t, Value, Value)> nest = [&](size_t dim, Value source, Value target) {
    if (dim + 1 < shape.size()) {
      int64_t step = 1;
      for (int64_t size : shape.drop_front(dim + 1))
        step *= size;
      emit.loop(emit.integer(0), emit.integer(shape[dim]), 1, [&](Value index) {
        nest(dim + 1, emit.address(source, element, emit.mul(index, strides[dim])),
             emit.address(target, element, emit.mul(index, step)));
      });
      return;
    }
    if (strides[dim] > 1) {
      emit.loop(emit.integer(0), emit.integer(shape[dim]), 1, [&](Value index) {
        Value taken = emit.load(element, emit.address(source, element, emit.mul(index, strides[dim])));
        emit.store(taken, emit.address(target, element, index));
      });
      return;
    }
    Value repeated = strides[dim] == 0 ? emit.splat(emit.load(element, source)) : Value();
    forChunks(emit, shape[dim], [&](Value index, Value mask) {
      Value taken = repeated ? repeated : emit.loadLanes(element, emit.address(source, element, index), mask);
      emit.storeLanes(taken, emit.address(target, element, index), mask);
    });
  };
  nest(0, from, to);
}

static SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return strides;
}

LogicalResult RowEmitter::runMove(Operation *op) {
  if (auto broadcast = dyn_cast<mt::BroadcastOp>(op)) {
    ArrayRef<int64_t> from = innerShape(broadcast.getOperand()), to = innerShape(broadcast.getResult());
    SmallVector<int64_t> strides(to.size(), 0), known = stridesOf(from);
    for (size_t i = 1; i <= std::min(from.size(), to.size()); ++i)
      strides[to.size() - i] = from[from.size() - i] == 1 ? 0 : known[from.size() - i];
    move(broadcast.getResult(), placeOf(broadcast.getOperand()), strides);
    return success();
  }
  if (auto transpose = dyn_cast<mt::TransposeOp>(op)) {
    int64_t batch = isSplit(transpose.getResult());
    SmallVector<int64_t> strides, known = stridesOf(innerShape(transpose.getOperand()));
    for (int64_t axis : transpose.getPermutation().drop_front(batch))
      strides.push_back(known[axis - batch]);
    move(transpose.getResult(), placeOf(transpose.getOperand()), strides);
    return success();
  }
  if (auto reduction = dyn_cast<mt::ReduceOp>(op))
    return reduce(reduction), success();
  if (auto search = dyn_cast<mt::ArgmaxOp>(op))
    return argmax(search), success();
  if (auto product = dyn_cast<mt::MatmulOp>(op))
    return matmul(product), success();
  if (runSpatial(op))
    return success();
  return op->emitError("expected an operation that kernels of rows can compute");
}

Value RowEmitter::reduceLine(mt::Reduction kind, Type element, Value place, int64_t count) {
  int64_t whole = count / lanes * lanes;
  Value running = emit.splat(identityOf(emit, kind));
  if (whole > 0)
    running = emit.loop(emit.integer(0), emit.integer(whole), lanes, running, [&](Value index, ValueRange carried) {
      return Emitter::Values{
          combine(emit, kind, carried[0], emit.loadLanes(element, emit.address(place, element, index)))};
    })[0];
  if (whole < count) {
    Value mask = emit.maskBelow(count - whole);
    Value next = combine(emit, kind, running, emit.loadLanes(element, emit.address(place, element, whole), mask));
    running = arith::SelectOp::create(emit, mask, next, running);
  }
  return emit.fold(running, [&](Value low, Value high) { return combine(emit, kind, low, high); });
}

void RowEmitter::reduce(mt::ReduceOp op) {
  Type f32 = emit.getF32Type(), element = elementOf(op.getOperand());
  int64_t count = innerCount(op.getResult());
  int64_t length = count == 0 ? 0 : innerCount(op.getOperand()) / count;
  Value from = placeOf(op.getOperand()), to = placeOf(op.getResult());
  emit.loop(emit.integer(0), emit.integer(count), 1, [&](Value index) {
    Value sum = reduceLine(op.getKind(), element, emit.address(from, element, emit.mul(index, length)), length);
    emit.store(sum, emit.address(to, f32, index));
  });
}

Value RowEmitter::floatsOf(Value value) {
  Type element = elementOf(value);
  if (!Emitter::isHalf(element))
    return placeOf(value);
  int64_t count = innerCount(value);
  temporaries += count * 4;
  Value place = emit.array(emit.getF32Type(), temporaries > scratchLimit ? 1 : count);
  emitExtend(emit, element, placeOf(value), count, place, count, emit.integer(1), emit.integer(count));
  return place;
}

void RowEmitter::argmax(mt::ArgmaxOp op) {
  Type f32 = emit.getF32Type(), i32 = emit.getI32Type();
  int64_t count = innerCount(op.getResult()), length = innerShape(op.getOperand()).back();
  Value from = placeOf(op.getOperand());
  auto search = [&](Value line) -> Value {
    Value zero = arith::ConstantOp::create(emit, emit.getI32IntegerAttr(0));
    Emitter::Values start{emit.load(f32, line), zero};
    return emit.loop(emit.integer(1), emit.integer(length), 1, start, [&](Value index, ValueRange best) {
      Value next = emit.load(f32, emit.address(line, f32, index));
      Value larger = arith::CmpFOp::create(emit, arith::CmpFPredicate::OGT, next, best[0]);
      Value number = arith::TruncIOp::create(emit, i32, index);
      return Emitter::Values{arith::SelectOp::create(emit, larger, next, best[0]),
                             arith::SelectOp::create(emit, larger, number, best[1])};
    })[1];
  };
  if (count == 1)
    return define(op.getResult(), search(from));
  Value to = placeOf(op.getResult());
  emit.loop(emit.integer(0), emit.integer(count), 1, [&](Value index) {
    emit.store(search(emit.address(from, f32, emit.mul(index, length))), emit.address(to, i32, index));
  });
}
