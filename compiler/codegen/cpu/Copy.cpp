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

// The copy of a box into a result with these strides, and the index of its first element there.
static std::pair<StridedCopy, int64_t> copyOf(const mt::Move &box, ArrayRef<int64_t> strides) {
  StridedCopy copy;
  int64_t first = 0;
  for (auto [axis, stride] : llvm::zip_equal(box.axes, strides)) {
    first += axis.first * stride;
    copy.shape.push_back(axis.size);
    copy.from.push_back(axis.stride);
    copy.to.push_back(axis.step * stride);
  }
  return {copy, first};
}

static int64_t elementsOf(const mt::Move &box) {
  int64_t count = 1;
  for (const mt::MoveAxis &axis : box.axes)
    count *= axis.size;
  return count;
}

// Copies that a loop replaces.
static constexpr size_t manyCopies = 8;

// The address of the row of a value like this in the buffer `first` + index of the kernel.
Value RowEmitter::inBuffer(Value index, int64_t first, Value like) {
  Value base = emit.loadPointer(kernel.buffers, emit.add(index, emit.integer(first)));
  return emit.address(base, elementOf(like), emit.mul(bufferRow, innerCount(like)));
}

size_t RowEmitter::copyFromBuffers(ArrayRef<mt::Move> boxes, ArrayRef<int64_t> strides, Value to) {
  auto argumentOf = [](const mt::Move &box) { return dyn_cast<BlockArgument>(resolve(box.operand)); };
  if (!bufferRow || boxes.size() < manyCopies || !argumentOf(boxes[0]) || !isSplit(argumentOf(boxes[0])))
    return 0;
  BlockArgument argument = argumentOf(boxes[0]);
  auto [copy, first] = copyOf(boxes[0], strides);
  int64_t distance = copyOf(boxes[1], strides).second - first;
  size_t count = 1;
  for (; count < boxes.size(); ++count) {
    const mt::Move &box = boxes[count];
    BlockArgument next = argumentOf(box);
    auto [nextCopy, nextFirst] = copyOf(box, strides);
    if (!next || next.getArgNumber() != argument.getArgNumber() + count || next.getType() != argument.getType() ||
        box.start != boxes[0].start || !(nextCopy == copy) ||
        nextFirst != first + static_cast<int64_t>(count) * distance)
      break;
  }
  if (count < manyCopies)
    return 0;
  Type element = elementOf(argument);
  emit.loop(emit.integer(0), emit.integer(static_cast<int64_t>(count)), 1, [&](Value index) {
    Value from = emit.address(inBuffer(index, argument.getArgNumber(), argument), element, boxes[0].start);
    Value there = emit.add(emit.mul(index, distance), emit.integer(first));
    emitCopy(emit, element, copy, from, emit.address(to, element, there));
  });
  return count;
}

size_t RowEmitter::copyToBuffers(ArrayRef<RowStatement> statements) {
  // The box that a statement copies to a result directly, and the number of the result.
  auto boxOf = [&](const RowStatement &statement) -> std::optional<std::pair<mt::Move, int64_t>> {
    auto op = dyn_cast<mt::MoveOpInterface>(statement.operations.front());
    if (statement.loop || statement.operations.size() != 1 || !op)
      return {};
    auto result = direct.find(op->getResult(0));
    SmallVector<mt::Move> boxes = op.getMoves();
    if (result == direct.end() || boxes.size() != 1 || elementsOf(boxes[0]) != innerCount(op->getResult(0)))
      return {};
    return std::pair{boxes[0], result->second};
  };
  if (!bufferRow || statements.size() < manyCopies)
    return 0;
  auto begin = boxOf(statements[0]), second = begin ? boxOf(statements[1]) : begin;
  if (!begin || !second)
    return 0;
  Value result = statements[0].operations[0]->getResult(0), operand = resolve(begin->first.operand);
  SmallVector<int64_t> strides = mt::stridesOf(innerShape(result));
  auto [copy, first] = copyOf(begin->first, strides);
  int64_t distance = second->first.start - begin->first.start;
  size_t count = 1;
  for (; count < statements.size(); ++count) {
    auto next = boxOf(statements[count]);
    Value made = statements[count].operations[0]->getResult(0);
    if (!next || made.getType() != result.getType() || resolve(next->first.operand) != operand ||
        !(copyOf(next->first, strides) == std::pair{copy, first}) ||
        next->first.start != begin->first.start + static_cast<int64_t>(count) * distance ||
        next->second != begin->second + static_cast<int64_t>(count))
      break;
  }
  if (count < manyCopies)
    return 0;
  Type element = elementOf(result);
  Value source = pointerOf(operand);
  int64_t buffer = kernel.body().getNumArguments() + begin->second;
  emit.loop(emit.integer(0), emit.integer(static_cast<int64_t>(count)), 1, [&](Value index) {
    Value from = emit.add(emit.mul(index, distance), emit.integer(begin->first.start));
    emitCopy(emit, element, copy, emit.address(source, element, from),
             emit.address(inBuffer(index, buffer, result), element, first));
  });
  return count;
}

void RowEmitter::copyBoxes(mt::MoveOpInterface op) {
  Value result = op->getResult(0), to = pointerOf(result);
  Type element = elementOf(result);
  SmallVector<int64_t> strides = mt::stridesOf(innerShape(result));
  SmallVector<mt::Move> boxes = op.getMoves();
  int64_t known = 0;
  for (const mt::Move &box : boxes)
    known += elementsOf(box);
  if (known < innerCount(result))
    emitFill(emit, element, fillOf(emit, op), to, innerCount(result));
  for (ArrayRef<mt::Move> rest = boxes; !rest.empty();) {
    if (size_t copied = copyFromBuffers(rest, strides, to)) {
      rest = rest.drop_front(copied);
      continue;
    }
    auto [copy, first] = copyOf(rest[0], strides);
    Value from = emit.address(pointerOf(rest[0].operand), element, rest[0].start);
    emitCopy(emit, element, copy, from, emit.address(to, element, first));
    rest = rest.drop_front();
  }
}

// Adds `width` elements at `from` to the elements at `to`.
static void addLine(Emitter &emit, Type element, Value from, Value to, int64_t width) {
  Type f32 = emit.realType();
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
