// SPDX-License-Identifier: Apache-2.0
//
// Emits ops that move elements by index or by id, as copies of boxes and lines.
#include "compiler/codegen/cpu/Copy.h"
#include "compiler/codegen/common/Rules.h"
#include "compiler/codegen/cpu/Lines.h"
#include "compiler/codegen/cpu/Rows.h"

using namespace mlir;
using namespace mtc;

void mtc::emitFill(Emitter &emit, Type element, Value value, Value to, int64_t count) {
  Value repeated = emit.splat(value);
  forChunks(emit, count, [&](Value index, Value mask) {
    emit.storeLanes(element, repeated, emit.address(to, element, index), mask);
  });
}

// Joins axes that are contiguous on both sides.
static StridedCopy merged(const StridedCopy &copy) {
  StridedCopy result;
  for (size_t dim = 0; dim < copy.shape.size(); ++dim) {
    if (copy.shape[dim] == 1)
      continue;
    bool joins = !result.shape.empty() && result.from.back() == copy.from[dim] * copy.shape[dim] &&
                 result.to.back() == copy.to[dim] * copy.shape[dim];
    if (joins) {
      result.shape.back() *= copy.shape[dim];
      result.from.back() = copy.from[dim];
      result.to.back() = copy.to[dim];
      continue;
    }
    result.shape.push_back(copy.shape[dim]);
    result.from.push_back(copy.from[dim]);
    result.to.push_back(copy.to[dim]);
  }
  if (result.shape.empty())
    return {{1}, {1}, {1}};
  return result;
}

void mtc::emitCopy(Emitter &emit, Type type, const StridedCopy &given, Value from, Value to) {
  Type element = emit.stored(type);
  StridedCopy copy = merged(given);
  // The last axis: elements are contiguous at the target, and contiguous or one repeated element at the source.
  auto line = [&](Value source, Value target) {
    Value repeated = copy.from.back() == 0 ? emit.splat(emit.load(element, source)) : Value();
    forChunks(emit, copy.shape.back(), [&](Value index, Value mask) {
      Value loaded = repeated ? repeated : emit.loadLanes(element, emit.address(source, element, index), mask);
      emit.storeLanes(loaded, emit.address(target, element, index), mask);
    });
  };
  bool isLine = (copy.from.back() == 0 || copy.from.back() == 1) && copy.to.back() == 1;
  std::function<void(size_t, Value, Value)> nest = [&](size_t dim, Value source, Value target) {
    bool isLast = dim + 1 == copy.shape.size();
    if (isLast && isLine)
      return line(source, target);
    emit.loop(emit.integer(0), emit.integer(copy.shape[dim]), 1, [&](Value index) {
      Value here = emit.address(source, element, emit.mul(index, copy.from[dim]));
      Value there = emit.address(target, element, emit.mul(index, copy.to[dim]));
      if (!isLast)
        return nest(dim + 1, here, there);
      emit.store(emit.load(element, here), there);
    });
  };
  nest(0, from, to);
}

void RowEmitter::copyBoxes(mt::MoveOpInterface op) {
  Value result = op->getResult(0), to = pointerOf(result);
  Type element = elementOf(result);
  SmallVector<int64_t> strides = mt::stridesOf(innerShape(result));
  SmallVector<mt::Move> boxes = op.getMoves();
  int64_t known = 0;
  for (const mt::Move &box : boxes) {
    int64_t count = 1;
    for (const mt::MoveAxis &axis : box.axes)
      count *= axis.size;
    known += count;
  }
  if (known < innerCount(result))
    emitFill(emit, element, fillOf(emit, op), to, innerCount(result));
  for (const mt::Move &box : boxes) {
    StridedCopy copy;
    int64_t first = 0;
    for (auto [axis, stride] : llvm::zip_equal(box.axes, strides)) {
      first += axis.first * stride;
      copy.shape.push_back(axis.size);
      copy.from.push_back(axis.stride);
      copy.to.push_back(axis.step * stride);
    }
    Value from = emit.address(pointerOf(box.operand), element, box.start);
    emitCopy(emit, element, copy, from, emit.address(to, element, first));
  }
}

// Adds `width` elements at `from` to the elements at `to`.
static void addLine(Emitter &emit, Type element, Value from, Value to, int64_t width) {
  Type f32 = emit.getF32Type();
  forChunks(emit, width, [&](Value index, Value mask) {
    Value address = emit.address(to, f32, index);
    Value sum = arith::AddFOp::create(emit, emit.loadLanes(f32, address, mask),
                                      emit.loadLanes(element, emit.address(from, element, index), mask));
    emit.storeLanes(sum, address, mask);
  });
}

void RowEmitter::lookUp(mt::LookupOpInterface op) {
  mt::Lookup lookup = op.getLookup();
  Type i32 = emit.getI32Type(), element = elementOf(lookup.source), held = elementOf(op->getResult(0));
  Value ids = pointerOf(lookup.ids), from = pointerOf(lookup.source), to = pointerOf(op->getResult(0));
  if (lookup.adds)
    emitFill(emit, held, emit.zeros(held), to, innerCount(op->getResult(0)));
  emit.loop(emit.integer(0), emit.integer(lookup.outer), 1, [&](Value block) {
    emit.loop(emit.integer(0), emit.integer(lookup.count), 1, [&](Value index) {
      Value id = entryOf(emit, emit.load(i32, emit.address(ids, i32, index)), lookup.entries);
      auto offset = [&](int64_t lines, Value line) {
        return emit.mul(emit.add(emit.mul(block, lines), line), lookup.width);
      };
      Value named = offset(lookup.entries, id), numbered = offset(lookup.count, index);
      if (lookup.adds)
        addLine(emit, element, emit.address(from, element, numbered), emit.address(to, held, named), lookup.width);
      else
        emitCopy(emit, element, {{lookup.width}, {1}, {1}}, emit.address(from, element, named),
                 emit.address(to, held, numbered));
    });
  });
}
