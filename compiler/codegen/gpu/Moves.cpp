// SPDX-License-Identifier: Apache-2.0
//
// An element of the operations of a row that are not element-wise.
#include "compiler/codegen/common/Reduction.h"
#include "compiler/codegen/gpu/Elements.h"

using namespace mlir;
using namespace mtc;

static int64_t listed(ArrayRef<int64_t> list, size_t i, int64_t otherwise) {
  return list.empty() ? otherwise : list[i];
}

Value BlockElements::padded(mt::PadOp op, ValueRange at) {
  Value halo = arith::ConstantOp::create(emit, emit.getF32FloatAttr(op.getValue().convertToFloat()));
  Emitter::Values source;
  Value inside = emit.equal(emit.integer(0), emit.integer(0));
  for (auto [i, place] : llvm::enumerate(at)) {
    Value moved = emit.add(place, -op.getLow()[i]);
    int64_t step = listed(op.getInterior(), i, 0) + 1;
    inside = both(emit, inside, emit.less(emit.integer(-1), moved));
    if (step > 1) {
      inside = both(emit, inside, emit.equal(emit.rem(moved, emit.integer(step)), emit.integer(0)));
      moved = emit.div(moved, emit.integer(step));
    }
    inside = both(emit, inside, emit.less(moved, emit.integer(innerShape(op.getOperand())[i])));
    source.push_back(moved);
  }
  return choose(emit, inside, [&] { return atPlace(op.getOperand(), source); }, halo);
}

Value BlockElements::joined(mt::ConcatOp op, ValueRange at) {
  int64_t dim = op.getDim() - isSplit(op.getResult()), begin = 0;
  Value taken = emit.zeros(elementOf(op.getResult()));
  for (Value operand : op.getOperands()) {
    int64_t end = begin + innerShape(operand)[dim];
    Value here = both(emit, emit.less(emit.integer(begin - 1), at[dim]), emit.less(at[dim], emit.integer(end)));
    auto load = [&] {
      Emitter::Values source(at);
      source[dim] = emit.add(at[dim], -begin);
      return atPlace(operand, source);
    };
    taken = choose(emit, here, load, taken);
    begin = end;
  }
  return taken;
}

// Elements of the result are elements of an operand.
Value BlockElements::shaped(Operation *op, ValueRange at) {
  Value from = op->getNumOperands() ? op->getOperand(0) : Value();
  int64_t batch = isSplit(op->getResult(0));
  Emitter::Values source;
  if (isa<mt::BroadcastOp>(op)) {
    ArrayRef<int64_t> shape = innerShape(from);
    for (auto [i, size] : llvm::enumerate(shape)) {
      int64_t dim = static_cast<int64_t>(at.size()) - shape.size() + i;
      source.push_back(size == 1 || dim < 0 ? emit.integer(0) : at[dim]);
    }
    return atPlace(from, source);
  }
  if (auto transpose = dyn_cast<mt::TransposeOp>(op)) {
    source.resize(at.size());
    for (auto [i, axis] : llvm::enumerate(transpose.getPermutation().drop_front(batch)))
      source[axis - batch] = at[i];
    return atPlace(from, source);
  }
  if (auto slice = dyn_cast<mt::SliceOp>(op)) {
    for (auto [i, place] : llvm::enumerate(at))
      source.push_back(emit.add(emit.mul(place, listed(slice.getStrides(), i, 1)), slice.getStarts()[i]));
    return atPlace(from, source);
  }
  if (auto reverse = dyn_cast<mt::ReverseOp>(op)) {
    source.assign(at.begin(), at.end());
    for (int64_t axis : reverse.getDims())
      source[axis - batch] = emit.sub(emit.integer(innerShape(from)[axis - batch] - 1), at[axis - batch]);
    return atPlace(from, source);
  }
  if (auto pad = dyn_cast<mt::PadOp>(op))
    return padded(pad, at);
  if (auto concat = dyn_cast<mt::ConcatOp>(op))
    return joined(concat, at);
  return {};
}

// One FMA chain in order of k.
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

Value BlockElements::reduced(Operation *op, Value index) {
  if (auto reduce = dyn_cast<mt::ReduceOp>(op)) {
    int64_t count = innerCount(reduce.getResult()), length = count ? innerCount(reduce.getOperand()) / count : 0;
    Value line = emit.mul(index, length);
    return emit.loop(emit.integer(0), emit.integer(length), 1, identityOf(emit, reduce.getKind()),
                     [&](Value i, ValueRange running) {
                       Value next = at(reduce.getOperand(), emit.add(line, i));
                       return Emitter::Values{combine(emit, reduce.getKind(), running[0], next)};
                     })[0];
  }
  if (auto search = dyn_cast<mt::ArgmaxOp>(op)) {
    Type i32 = emit.getI32Type();
    int64_t length = innerShape(search.getOperand()).back();
    Value line = emit.mul(index, length);
    Emitter::Values start{at(search.getOperand(), line),
                          arith::ConstantOp::create(emit, emit.getI32IntegerAttr(0)).getResult()};
    return emit.loop(emit.integer(1), emit.integer(length), 1, start, [&](Value i, ValueRange best) {
      Value next = at(search.getOperand(), emit.add(line, i));
      Value larger = arith::CmpFOp::create(emit, arith::CmpFPredicate::OGT, next, best[0]);
      return Emitter::Values{arith::SelectOp::create(emit, larger, next, best[0]),
                             arith::SelectOp::create(emit, larger, arith::TruncIOp::create(emit, i32, i), best[1])};
    })[1];
  }
  auto matmul = dyn_cast<mt::MatmulOp>(op);
  return matmul ? product(matmul, index) : Value();
}

Value BlockElements::moved(Operation *op, Value index) {
  Emitter::Values place = coordinates(emit, index, innerShape(op->getResult(0)));
  Value element = shaped(op, place);
  if (!element)
    element = reduced(op, index);
  if (!element)
    element = windowed(op, index, place);
  return element ? element : lookedUp(op, index, place);
}
