// SPDX-License-Identifier: Apache-2.0
//
// Emits one element of row operations that are not element-wise.
#include "compiler/codegen/common/Rules.h"
#include "compiler/codegen/gpu/Elements.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mtc;

// The axis along which the boxes are adjacent and fill a result of this shape, as in a concatenation.
static std::optional<size_t> stackedAxis(ArrayRef<mt::Move> boxes, ArrayRef<int64_t> shape) {
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    int64_t next = 0;
    bool areStacked = llvm::all_of(boxes, [&](const mt::Move &box) {
      return llvm::all_of(llvm::enumerate(box.axes), [&](const auto &at) {
        int64_t first = at.index() == axis ? std::exchange(next, next + at.value().size) : 0;
        bool isFull = at.index() == axis || at.value().size == shape[at.index()];
        return at.value().first == first && (at.value().step == 1 || at.value().size == 1) && isFull;
      });
    });
    if (areStacked && next == shape[axis] && boxes.size() > 1)
      return axis;
  }
  return std::nullopt;
}

// The element at these coordinates of adjacent boxes, which is found by bisection.
Value BlockElements::stacked(ArrayRef<mt::Move> boxes, size_t axis, ValueRange at) {
  if (boxes.size() == 1) {
    Value source = emit.integer(boxes.front().start);
    for (auto [position, along] : llvm::zip_equal(at, boxes.front().axes))
      if (along.stride != 0)
        source = emit.add(source, emit.mul(emit.add(position, -along.first), along.stride));
    return this->at(boxes.front().operand, source);
  }
  ArrayRef<mt::Move> low = boxes.take_front(boxes.size() / 2), high = boxes.drop_front(low.size());
  Value isLow = emit.less(at[axis], emit.integer(high.front().axes[axis].first));
  Type element = elementOf(boxes.front().operand);
  return choose(
      emit, isa<FloatType>(element) ? emit.getF32Type() : element, isLow, [&] { return stacked(low, axis, at); },
      [&] { return stacked(high, axis, at); });
}

// The element at these coordinates of the result, from the box that contains it.
Value BlockElements::copied(mt::MoveOpInterface op, ValueRange at) {
  ArrayRef<int64_t> shape = innerShape(op->getResult(0));
  SmallVector<mt::Move> boxes = op.getMoves();
  if (std::optional<size_t> axis = stackedAxis(boxes, shape))
    return stacked(boxes, *axis, at);
  Value element;
  for (const mt::Move &box : boxes) {
    Value inside, source = emit.integer(box.start);
    auto require = [&](Value condition) { inside = inside ? both(emit, inside, condition) : condition; };
    for (auto [position, axis, size] : llvm::zip_equal(at, box.axes, shape)) {
      Value index = emit.add(position, -axis.first);
      if (axis.first > 0)
        require(emit.less(emit.integer(-1), index));
      if (axis.step > 1) {
        require(emit.equal(emit.rem(index, emit.integer(axis.step)), emit.integer(0)));
        index = emit.div(index, emit.integer(axis.step));
      }
      if (axis.first + (axis.size - 1) * axis.step + 1 < size)
        require(emit.less(index, emit.integer(axis.size)));
      if (axis.stride != 0)
        source = emit.add(source, emit.mul(index, axis.stride));
    }
    auto load = [&] { return this->at(box.operand, source); };
    if (!inside)
      return load();
    element = choose(emit, inside, load, element ? element : fillOf(emit, op));
  }
  return element;
}

// One FMA chain in the order of k.
Value BlockElements::product(mt::MatmulOp op, Value index) {
  ArrayRef<int64_t> left = innerShape(op.getLhs()), right = innerShape(op.getRhs());
  bool transposeA = op.getTransposeA(), transposeB = op.getTransposeB();
  int64_t depth = transposeB ? right.back() : right[right.size() - 2];
  int64_t columns = transposeB ? right[right.size() - 2] : right.back();
  int64_t height = left.size() < 2 ? 1 : transposeA ? left.back() : left[left.size() - 2];
  bool shared = innerCount(op.getRhs()) == depth * columns;
  Value zero = emit.integer(0), matrix = emit.div(index, emit.integer(columns * height));
  Value column = emit.rem(index, emit.integer(columns));
  Value line = emit.rem(emit.div(index, emit.integer(columns)), emit.integer(height));
  Value a = emit.mul(matrix, height * depth), b = shared ? zero : emit.mul(matrix, depth * columns);
  return emit.loop(zero, emit.integer(depth), 1, emit.zeros(emit.getF32Type()), [&](Value k, ValueRange sum) {
    Value x = transposeA ? emit.add(emit.mul(k, height), line) : emit.add(emit.mul(line, depth), k);
    Value y = transposeB ? emit.add(emit.mul(column, depth), k) : emit.add(emit.mul(k, columns), column);
    return Emitter::Values{emit.fma(at(op.getLhs(), emit.add(a, x)), at(op.getRhs(), emit.add(b, y)), sum[0])};
  })[0];
}

Value BlockElements::reduced(mt::ReduceOp op, Value index) {
  int64_t count = innerCount(op.getResult()), length = count ? innerCount(op.getOperand()) / count : 0;
  Value line = emit.mul(index, length);
  return emit.loop(emit.integer(0), emit.integer(length), 1, identityOf(emit, op), [&](Value i, ValueRange running) {
    Value next = at(op.getOperand(), emit.add(line, i));
    return Emitter::Values{combine(emit, op.getKind(), running[0], next)};
  })[0];
}

Value BlockElements::searched(mt::ArgmaxOp op, Value index) {
  int64_t length = innerShape(op.getOperand()).back();
  Value line = emit.mul(index, length);
  Emitter::Values start{at(op.getOperand(), line), emit.zeros(emit.getI32Type())};
  return emit.loop(emit.integer(1), emit.integer(length), 1, start, [&](Value i, ValueRange best) {
    Value number = arith::TruncIOp::create(emit, emit.getI32Type(), i);
    return firstLargest(emit, best, at(op.getOperand(), emit.add(line, i)), number);
  })[1];
}

Value BlockElements::moved(Operation *op, Value index) {
  Emitter::Values position = coordinates(emit, index, innerShape(op->getResult(0)));
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](mt::MoveOpInterface move) { return copied(move, position); })
      .Case([&](mt::LookupOpInterface lookup) { return lookedUp(lookup, index); })
      .Case([&](mt::ReduceOp reduction) { return reduced(reduction, index); })
      .Case([&](mt::ArgmaxOp search) { return searched(search, index); })
      .Case([&](mt::MatmulOp matmul) { return product(matmul, index); })
      .Case([&](mt::WindowOpInterface pool) { return folded(pool, position, 1)[0]; })
      .Case([&](mt::WindowGradientOpInterface gradient) { return windowGradient(gradient, index, position, 1)[0]; })
      .Case([&](mt::Conv2DKernelGradientOp gradient) { return kernelGradient(gradient, position); })
      .Default([](Operation *) { return Value(); });
}
