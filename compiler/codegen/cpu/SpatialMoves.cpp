// SPDX-License-Identifier: Apache-2.0
//
// Operations of a row that move elements between axes: pad, slice, concat, reverse, gather and their like, as copies of
// boxes.
#include "compiler/codegen/cpu/Conv.h"
#include "compiler/codegen/cpu/Lines.h"
#include "compiler/codegen/cpu/Pool.h"
#include "compiler/codegen/cpu/Rows.h"

using namespace mlir;
using namespace mtc;

static SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return strides;
}

void mtc::emitFill(Emitter &emit, Value value, Value to, int64_t count) {
  Type element = value.getType();
  Value repeated = emit.splat(value);
  forChunks(emit, count,
            [&](Value index, Value mask) { emit.storeLanes(repeated, emit.address(to, element, index), mask); });
}

// Axes that lie behind one another on both sides are one.
static Move merged(const Move &move) {
  Move result;
  for (size_t dim = 0; dim < move.shape.size(); ++dim) {
    if (move.shape[dim] == 1)
      continue;
    bool joins = !result.shape.empty() && result.from.back() == move.from[dim] * move.shape[dim] &&
                 result.to.back() == move.to[dim] * move.shape[dim];
    if (joins) {
      result.shape.back() *= move.shape[dim];
      result.from.back() = move.from[dim];
      result.to.back() = move.to[dim];
      continue;
    }
    result.shape.push_back(move.shape[dim]);
    result.from.push_back(move.from[dim]);
    result.to.push_back(move.to[dim]);
  }
  if (result.shape.empty())
    return {{1}, {1}, {1}};
  return result;
}

void mtc::emitMove(Emitter &emit, Type moved, const Move &given, Value from, Value to) {
  Type element = emit.stored(moved);
  Move move = merged(given);
  std::function<void(size_t, Value, Value)> nest = [&](size_t dim, Value source, Value target) {
    if (dim + 1 == move.shape.size() && move.from[dim] == 1 && move.to[dim] == 1)
      return forChunks(emit, move.shape[dim], [&](Value index, Value mask) {
        Value taken = emit.loadLanes(element, emit.address(source, element, index), mask);
        emit.storeLanes(taken, emit.address(target, element, index), mask);
      });
    emit.loop(emit.integer(0), emit.integer(move.shape[dim]), 1, [&](Value index) {
      Value here = emit.address(source, element, emit.mul(index, move.from[dim]));
      Value there = emit.address(target, element, emit.mul(index, move.to[dim]));
      if (dim + 1 < move.shape.size())
        return nest(dim + 1, here, there);
      emit.store(emit.load(element, here), there);
    });
  };
  nest(0, from, to);
}

// The row of a table that an id names, as i64.
static Value clampedId(Emitter &emit, Value ids, Value index, int64_t entries) {
  Type i32 = emit.getI32Type();
  Value id = arith::ExtSIOp::create(emit, emit.getI64Type(), emit.load(i32, emit.address(ids, i32, index)));
  return emit.least(emit.most(id, emit.integer(0)), emit.integer(entries - 1));
}

static void emitGather(Emitter &emit, mt::GatherOp op, Value table, Value ids, Value to) {
  int64_t entries = tensorOf(op.getTable()).getDimSize(0), width = innerCount(op.getTable()) / entries;
  Type element = elementOf(op.getTable());
  emit.loop(emit.integer(0), emit.integer(innerCount(op.getIds())), 1, [&](Value index) {
    Value from = emit.address(table, element, emit.mul(clampedId(emit, ids, index, entries), width));
    emitMove(emit, element, {{width}, {1}, {1}}, from, emit.address(to, element, emit.mul(index, width)));
  });
}

// Adds `width` elements to those at `to`.
static void emitAddLine(Emitter &emit, Value from, Value to, int64_t width) {
  Type f32 = emit.getF32Type();
  forChunks(emit, width, [&](Value j, Value mask) {
    Value place = emit.address(to, f32, j);
    Value sum = arith::AddFOp::create(emit, emit.loadLanes(f32, place, mask),
                                      emit.loadLanes(f32, emit.address(from, f32, j), mask));
    emit.storeLanes(sum, place, mask);
  });
}

// Of operands without a batch axis.
static void emitScatter(Emitter &emit, mt::ScatterAddOp op, Value ids, Value updates, Value to) {
  Type f32 = emit.getF32Type();
  int64_t entries = op.getType().getDimSize(0), width = innerCount(op.getResult()) / entries;
  emitFill(emit, arith::ConstantOp::create(emit, emit.getF32FloatAttr(0)), to, entries * width);
  emit.loop(emit.integer(0), emit.integer(innerCount(op.getIds())), 1, [&](Value index) {
    Value line = emit.address(to, f32, emit.mul(clampedId(emit, ids, index, entries), width));
    Value from = emit.address(updates, f32, emit.mul(index, width));
    emitAddLine(emit, from, line, width);
  });
}

// Calls each(offset of a line in the whole, its offset in what is taken) for lines of `width` elements.
static void forLines(Emitter &emit, Value whole, Value taken, Value ids, int64_t dim,
                     llvm::function_ref<void(Value, Value, int64_t)> each) {
  ArrayRef<int64_t> shape = innerShape(whole);
  int64_t axis = dim - 1, entries = shape[axis], count = innerShape(taken)[axis], outer = 1, width = 1;
  for (int64_t size : shape.take_front(axis))
    outer *= size;
  for (int64_t size : shape.drop_front(axis + 1))
    width *= size;
  emit.loop(emit.integer(0), emit.integer(outer), 1, [&](Value block) {
    emit.loop(emit.integer(0), emit.integer(count), 1, [&](Value index) {
      Value id = clampedId(emit, ids, index, entries);
      auto offset = [&](int64_t lines, Value line) { return emit.mul(emit.add(emit.mul(block, lines), line), width); };
      each(offset(entries, id), offset(count, index), width);
    });
  });
}

void RowEmitter::take(mt::TakeOp op, Value to) {
  Type element = elementOf(op.getOperand());
  Value from = placeOf(op.getOperand());
  forLines(emit, op.getOperand(), op.getResult(), placeOf(op.getIds()), op.getDim(),
           [&](Value there, Value here, int64_t width) {
             emitMove(emit, element, {{width}, {1}, {1}}, emit.address(from, element, there),
                      emit.address(to, element, here));
           });
}

void RowEmitter::indexAdd(mt::IndexAddOp op, Value to) {
  Type f32 = emit.getF32Type();
  Value from = placeOf(op.getUpdates());
  emitFill(emit, arith::ConstantOp::create(emit, emit.getF32FloatAttr(0)), to, innerCount(op.getResult()));
  forLines(emit, op.getResult(), op.getUpdates(), placeOf(op.getIds()), op.getDim(),
           [&](Value there, Value here, int64_t width) {
             emitAddLine(emit, emit.address(from, f32, here), emit.address(to, f32, there), width);
           });
}

static int64_t at(ArrayRef<int64_t> list, size_t i, int64_t otherwise) { return list.empty() ? otherwise : list[i]; }

void RowEmitter::pad(mt::PadOp op, Value to) {
  Type element = elementOf(op.getOperand());
  ArrayRef<int64_t> from = innerShape(op.getOperand());
  SmallVector<int64_t> strides = stridesOf(innerShape(op.getResult()));
  // In 16 bits there is only zero (mt-precision).
  TypedAttr value = Emitter::isHalf(element) ? TypedAttr(emit.getI16IntegerAttr(0))
                                             : TypedAttr(emit.getF32FloatAttr(op.getValue().convertToFloat()));
  emitFill(emit, arith::ConstantOp::create(emit, value), to, innerCount(op.getResult()));
  Move box{SmallVector<int64_t>(from), stridesOf(from), {}};
  int64_t start = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    start += op.getLow()[i] * strides[i];
    box.to.push_back(strides[i] * (at(op.getInterior(), i, 0) + 1));
  }
  emitMove(emit, element, box, placeOf(op.getOperand()), emit.address(to, element, start));
}

void RowEmitter::slice(mt::SliceOp op, Value to) {
  Type element = elementOf(op.getOperand());
  ArrayRef<int64_t> shape = innerShape(op.getResult());
  SmallVector<int64_t> strides = stridesOf(innerShape(op.getOperand()));
  Move box{SmallVector<int64_t>(shape), {}, stridesOf(shape)};
  int64_t start = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    start += op.getStarts()[i] * strides[i];
    box.from.push_back(strides[i] * at(op.getStrides(), i, 1));
  }
  emitMove(emit, element, box, emit.address(placeOf(op.getOperand()), element, start), to);
}

void RowEmitter::concat(mt::ConcatOp op, Value to) {
  int64_t dim = op.getDim() - isSplit(op.getResult());
  SmallVector<int64_t> strides = stridesOf(innerShape(op.getResult()));
  int64_t start = 0;
  for (Value operand : op.getOperands()) {
    ArrayRef<int64_t> shape = innerShape(operand);
    Type element = elementOf(operand);
    emitMove(emit, element, {SmallVector<int64_t>(shape), stridesOf(shape), strides}, placeOf(operand),
             emit.address(to, element, start));
    start += shape[dim] * strides[dim];
  }
}

void RowEmitter::reverse(mt::ReverseOp op, Value to) {
  Type element = elementOf(op.getOperand());
  ArrayRef<int64_t> shape = innerShape(op.getResult());
  SmallVector<int64_t> strides = stridesOf(shape);
  Move box{SmallVector<int64_t>(shape), strides, strides};
  int64_t start = 0;
  for (int64_t axis : op.getDims()) {
    int64_t dim = axis - isSplit(op.getResult());
    start += (shape[dim] - 1) * strides[dim];
    box.from[dim] = -strides[dim];
  }
  emitMove(emit, element, box, emit.address(placeOf(op.getOperand()), element, start), to);
}

bool RowEmitter::runSpatial(Operation *op) {
  Value result = op->getResult(0);
  if (!isa<mt::Conv2DKernelGradientOp, mt::PoolOp, mt::PoolGradientOp, mt::PadOp, mt::SliceOp, mt::ConcatOp,
           mt::ReverseOp, mt::GatherOp, mt::ScatterAddOp, mt::TakeOp, mt::IndexAddOp>(op))
    return false;
  bool single = innerCount(result) == 1;
  Value to = single ? emit.array(elementOf(result), 1) : placeOf(result);
  if (auto convolved = dyn_cast<mt::Conv2DKernelGradientOp>(op))
    emitKernelGradient(kernel, convolved, placeOf(convolved.getInput()), placeOf(convolved.getGradient()), to);
  else if (auto pool = dyn_cast<mt::PoolOp>(op))
    emitPool(emit, pool.getPooling(), pool.getKind(), elementOf(pool.getInput()), placeOf(pool.getInput()), to);
  else if (auto gradient = dyn_cast<mt::PoolGradientOp>(op))
    emitPoolGradient(emit, gradient, placeOf(gradient.getGradient()),
                     gradient.getInput() ? placeOf(gradient.getInput()) : Value(), to);
  else if (auto padding = dyn_cast<mt::PadOp>(op))
    pad(padding, to);
  else if (auto part = dyn_cast<mt::SliceOp>(op))
    slice(part, to);
  else if (auto whole = dyn_cast<mt::ConcatOp>(op))
    concat(whole, to);
  else if (auto reversed = dyn_cast<mt::ReverseOp>(op))
    reverse(reversed, to);
  else if (auto slices = dyn_cast<mt::TakeOp>(op))
    take(slices, to);
  else if (auto sum = dyn_cast<mt::IndexAddOp>(op))
    indexAdd(sum, to);
  else if (auto gather = dyn_cast<mt::GatherOp>(op))
    emitGather(emit, gather, placeOf(gather.getTable()), placeOf(gather.getIds()), to);
  else if (auto scatter = dyn_cast<mt::ScatterAddOp>(op))
    emitScatter(emit, scatter, placeOf(scatter.getIds()), placeOf(scatter.getUpdates()), to);
  if (single)
    define(result, emit.load(elementOf(result), to));
  return true;
}
