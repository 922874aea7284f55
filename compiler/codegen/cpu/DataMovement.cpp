// SPDX-License-Identifier: Apache-2.0
//
// Operations of a row that are not a loop over linear elements.
#include "compiler/codegen/common/Rules.h"
#include "compiler/codegen/cpu/Conv.h"
#include "compiler/codegen/cpu/Lines.h"
#include "compiler/codegen/cpu/Pool.h"
#include "compiler/codegen/cpu/Rows.h"
#include "compiler/codegen/cpu/Tile.h"
#include "llvm/ADT/TypeSwitch.h"

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
  Value from = pointerOf(value);
  forChunks(emit, count, [&](Value index, Value mask) {
    emit.storeLanes(emit.loadLanes(element, emit.address(from, element, index), mask), emit.address(to, element, index),
                    mask);
  });
}

LogicalResult RowEmitter::runMove(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](mt::MoveOpInterface move) { return copyBoxes(move), success(); })
      .Case([&](mt::LookupOpInterface lookup) { return lookUp(lookup), success(); })
      .Case([&](mt::ReduceOp reduction) { return reduce(reduction), success(); })
      .Case([&](mt::ArgmaxOp search) { return argmax(search), success(); })
      .Case([&](mt::MatmulOp product) { return matmul(product), success(); })
      .Case([&](mt::Conv2DKernelGradientOp gradient) {
        emitKernelGradient(kernel, gradient, pointerOf(gradient.getInput()), pointerOf(gradient.getGradient()),
                           pointerOf(gradient.getResult()));
        return success();
      })
      .Case([&](mt::WindowOpInterface pool) {
        emitWindows(emit, pool, pointerOf(pool.getInput()), pointerOf(op->getResult(0)));
        return success();
      })
      .Case([&](mt::WindowGradientOpInterface gradient) {
        Value input = gradient.getInput() ? pointerOf(gradient.getInput()) : Value();
        emitWindowGradient(emit, gradient, pointerOf(gradient.getGradient()), input, pointerOf(op->getResult(0)));
        return success();
      })
      .Default(
          [](Operation *other) { return other->emitError("expected an operation that kernels of rows can compute"); });
}

Value RowEmitter::reduceLine(mt::Reduction kind, Type element, Value pointer, int64_t count) {
  int64_t whole = count / lanes * lanes;
  Value running = emit.splat(identityOf(emit, kind, element));
  if (whole > 0)
    running = emit.loop(emit.integer(0), emit.integer(whole), lanes, running, [&](Value index, ValueRange carried) {
      return Emitter::Values{
          combine(emit, kind, carried[0], emit.loadLanes(element, emit.address(pointer, element, index)))};
    })[0];
  if (whole < count) {
    Value mask = emit.maskBelow(count - whole);
    Value next = combine(emit, kind, running, emit.loadLanes(element, emit.address(pointer, element, whole), mask));
    running = arith::SelectOp::create(emit, mask, next, running);
  }
  return emit.fold(running, [&](Value low, Value high) { return combine(emit, kind, low, high); });
}

void RowEmitter::reduce(mt::ReduceOp op) {
  Type result = elementOf(op.getResult()), element = elementOf(op.getOperand());
  int64_t count = innerCount(op.getResult());
  int64_t length = count == 0 ? 0 : innerCount(op.getOperand()) / count;
  Value from = pointerOf(op.getOperand()), to = pointerOf(op.getResult());
  emit.loop(emit.integer(0), emit.integer(count), 1, [&](Value index) {
    Value sum = reduceLine(op.getKind(), element, emit.address(from, element, emit.mul(index, length)), length);
    emit.store(sum, emit.address(to, result, index));
  });
}

Value RowEmitter::floatsOf(Value value) {
  Type element = elementOf(value);
  if (!Emitter::isHalf(element))
    return pointerOf(value);
  int64_t count = innerCount(value);
  temporaries += count * 4;
  Value pointer = emit.array(emit.realType(), temporaries > scratchLimit ? 1 : count);
  emitExtend(emit, element, pointerOf(value), count, pointer, count, emit.integer(1), emit.integer(count));
  return pointer;
}

// Index of the first largest element of a line. All vector elements start with the first element of the line; at the
// end they are reduced to the largest element, then to the lowest index that has it. A NaN is the largest, and equals
// nothing.
static Value firstLargestOf(Emitter &emit, Type element, Value line, int64_t length) {
  Emitter::Values best{emit.splat(emit.load(element, line)), emit.zeros(emit.vectorOf(emit.getI32Type()))};
  auto next = [&](Value index, Value mask, ValueRange before) {
    Value loaded = emit.loadLanes(element, emit.address(line, element, index), mask);
    if (mask)
      loaded = arith::SelectOp::create(emit, mask, loaded, before[0]);
    Value first = emit.splat(arith::TruncIOp::create(emit, emit.getI32Type(), index));
    return firstLargest(emit, before, loaded, arith::AddIOp::create(emit, first, emit.laneNumbers()));
  };
  int64_t whole = length / lanes * lanes;
  if (whole > 0)
    best = emit.loop(emit.integer(0), emit.integer(whole), lanes, best,
                     [&](Value index, ValueRange before) { return next(index, Value(), before); });
  if (whole < length)
    best = next(emit.integer(whole), emit.maskBelow(length - whole), best);
  Value largest = emit.splat(
      emit.fold(best[0], [&](Value low, Value high) { return combine(emit, mt::Reduction::max, low, high); }));
  Value has;
  if (element.isInteger())
    has = arith::CmpIOp::create(emit, arith::CmpIPredicate::eq, best[0], largest);
  else
    has = arith::OrIOp::create(emit, arith::CmpFOp::create(emit, arith::CmpFPredicate::OEQ, best[0], largest),
                               arith::CmpFOp::create(emit, arith::CmpFPredicate::UNO, best[0], best[0]));
  Value none = emit.splatConstant(emit.getI32IntegerAttr(std::numeric_limits<int32_t>::max()));
  return emit.fold(arith::SelectOp::create(emit, has, best[1], none),
                   [&](Value low, Value high) -> Value { return arith::MinSIOp::create(emit, low, high); });
}

void RowEmitter::argmax(mt::ArgmaxOp op) {
  Type element = elementOf(op.getOperand()), i32 = emit.getI32Type();
  int64_t count = innerCount(op.getResult()), length = innerShape(op.getOperand()).back();
  Value from = pointerOf(op.getOperand());
  if (count == 1)
    return define(op.getResult(), firstLargestOf(emit, element, from, length));
  Value to = pointerOf(op.getResult());
  emit.loop(emit.integer(0), emit.integer(count), 1, [&](Value index) {
    Value line = emit.address(from, element, emit.mul(index, length));
    emit.store(firstLargestOf(emit, element, line, length), emit.address(to, i32, index));
  });
}
