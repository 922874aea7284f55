// SPDX-License-Identifier: Apache-2.0
//
// The operations of a row that are more than a loop over flat elements: an element of the result is one thread's.
#include "compiler/codegen/Lines.h"
#include "compiler/codegen/gpu/BlockRows.h"

using namespace mlir;
using namespace mtc;

void BlockRows::forResult(Operation *op, llvm::function_ref<Value(Value, ValueRange)> element) {
  Value value = op->getResult(0);
  ArrayRef<int64_t> shape = innerShape(value);
  int64_t count = innerCount(value);
  if (count == 1) {
    Value zero = emit.integer(0);
    return define(value, element(zero, SmallVector<Value>(shape.size(), zero)));
  }
  Value to = placeOf(value);
  kernel.forThreads(count, [&](Value index) {
    Value computed = element(index, coordinates(emit, index, shape));
    emit.store(computed, emit.address(to, elementOf(value), index));
  });
}

// The element of `value` at these coordinates.
Value BlockRows::loadAt(Value value, Value base, ValueRange at) {
  return emit.load(elementOf(value), emit.address(base, elementOf(value), flatten(emit, at, innerShape(value))));
}

static int64_t listed(ArrayRef<int64_t> list, size_t i, int64_t otherwise) {
  return list.empty() ? otherwise : list[i];
}

// Elements of the result are elements of an operand.
bool BlockRows::runShape(Operation *op) {
  Value from = op->getNumOperands() ? op->getOperand(0) : Value();
  int64_t batch = isSplit(op->getResult(0));
  if (isa<mt::BroadcastOp>(op)) {
    Value base = placeOf(from);
    ArrayRef<int64_t> shape = innerShape(from);
    forResult(op, [&](Value, ValueRange at) {
      Emitter::Values source;
      for (auto [i, size] : llvm::enumerate(shape)) {
        int64_t dim = static_cast<int64_t>(at.size()) - shape.size() + i;
        source.push_back(size == 1 || dim < 0 ? emit.integer(0) : at[dim]);
      }
      return loadAt(from, base, source);
    });
    return true;
  }
  if (auto transpose = dyn_cast<mt::TransposeOp>(op)) {
    Value base = placeOf(from);
    forResult(op, [&](Value, ValueRange at) {
      Emitter::Values source(at.size());
      for (auto [i, axis] : llvm::enumerate(transpose.getPermutation().drop_front(batch)))
        source[axis - batch] = at[i];
      return loadAt(from, base, source);
    });
    return true;
  }
  if (auto slice = dyn_cast<mt::SliceOp>(op)) {
    Value base = placeOf(from);
    forResult(op, [&](Value, ValueRange at) {
      Emitter::Values source;
      for (auto [i, place] : llvm::enumerate(at))
        source.push_back(emit.add(emit.mul(place, listed(slice.getStrides(), i, 1)), slice.getStarts()[i]));
      return loadAt(from, base, source);
    });
    return true;
  }
  if (auto reverse = dyn_cast<mt::ReverseOp>(op)) {
    Value base = placeOf(from);
    forResult(op, [&](Value, ValueRange at) {
      Emitter::Values source(at);
      for (int64_t axis : reverse.getDims())
        source[axis - batch] = emit.sub(emit.integer(innerShape(from)[axis - batch] - 1), at[axis - batch]);
      return loadAt(from, base, source);
    });
    return true;
  }
  if (auto pad = dyn_cast<mt::PadOp>(op)) {
    Value base = placeOf(from);
    Value rim = arith::ConstantOp::create(emit, emit.getF32FloatAttr(pad.getValue().convertToFloat()));
    forResult(op, [&](Value, ValueRange at) {
      Emitter::Values source;
      Value inside = emit.equal(emit.integer(0), emit.integer(0));
      for (auto [i, place] : llvm::enumerate(at)) {
        Value moved = emit.add(place, -pad.getLow()[i]);
        int64_t step = listed(pad.getInterior(), i, 0) + 1;
        inside = both(emit, inside, emit.less(emit.integer(-1), moved));
        if (step > 1) {
          inside = both(emit, inside, emit.equal(emit.rem(moved, emit.integer(step)), emit.integer(0)));
          moved = emit.div(moved, emit.integer(step));
        }
        inside = both(emit, inside, emit.less(moved, emit.integer(innerShape(from)[i])));
        source.push_back(moved);
      }
      return choose(emit, inside, [&] { return loadAt(from, base, source); }, rim);
    });
    return true;
  }
  if (auto concat = dyn_cast<mt::ConcatOp>(op)) {
    int64_t dim = concat.getDim() - batch;
    SmallVector<Value> bases;
    for (Value operand : concat.getOperands())
      bases.push_back(placeOf(operand));
    forResult(op, [&](Value, ValueRange at) {
      Value taken = emit.zeros(elementOf(op->getResult(0)));
      int64_t begin = 0;
      for (auto [operand, base] : llvm::zip_equal(concat.getOperands(), bases)) {
        int64_t end = begin + innerShape(operand)[dim];
        Value here = both(emit, emit.less(emit.integer(begin - 1), at[dim]), emit.less(at[dim], emit.integer(end)));
        auto load = [&] {
          Emitter::Values source(at);
          source[dim] = emit.add(at[dim], -begin);
          return loadAt(operand, base, source);
        };
        taken = choose(emit, here, load, taken);
        begin = end;
      }
      return taken;
    });
    return true;
  }
  return false;
}

bool BlockRows::runReduction(Operation *op) {
  Type f32 = emit.getF32Type(), i32 = emit.getI32Type();
  if (auto reduce = dyn_cast<mt::ReduceOp>(op)) {
    int64_t count = innerCount(reduce.getResult()), length = count ? innerCount(reduce.getOperand()) / count : 0;
    Value from = placeOf(reduce.getOperand());
    forResult(op, [&](Value index, ValueRange) {
      Value line = emit.address(from, f32, emit.mul(index, length));
      return emit.loop(emit.integer(0), emit.integer(length), 1, identityOf(emit, reduce.getKind()),
                       [&](Value i, ValueRange running) {
                         return Emitter::Values{
                             combine(emit, reduce.getKind(), running[0], emit.load(f32, emit.address(line, f32, i)))};
                       })[0];
    });
    return true;
  }
  if (auto search = dyn_cast<mt::ArgmaxOp>(op)) {
    int64_t length = innerShape(search.getOperand()).back();
    Value from = placeOf(search.getOperand());
    forResult(op, [&](Value index, ValueRange) {
      Value line = emit.address(from, f32, emit.mul(index, length));
      Value zero = arith::ConstantOp::create(emit, emit.getI32IntegerAttr(0));
      Emitter::Values start{emit.load(f32, line), zero};
      return emit.loop(emit.integer(1), emit.integer(length), 1, start, [&](Value i, ValueRange best) {
        Value next = emit.load(f32, emit.address(line, f32, i));
        Value larger = arith::CmpFOp::create(emit, arith::CmpFPredicate::OGT, next, best[0]);
        return Emitter::Values{arith::SelectOp::create(emit, larger, next, best[0]),
                               arith::SelectOp::create(emit, larger, arith::TruncIOp::create(emit, i32, i), best[1])};
      })[1];
    });
    return true;
  }
  auto product = dyn_cast<mt::MatmulOp>(op);
  if (!product)
    return false;
  ArrayRef<int64_t> left = innerShape(product.getLhs()), right = innerShape(product.getRhs());
  bool transposeA = product.getTransposeA(), transposeB = product.getTransposeB();
  int64_t depth = transposeB ? right.back() : right[right.size() - 2];
  int64_t columns = transposeB ? right[right.size() - 2] : right.back();
  int64_t height = left.size() < 2 ? 1 : transposeA ? left.back() : left[left.size() - 2];
  bool shared = innerCount(product.getRhs()) == depth * columns;
  Value a = placeOf(product.getLhs()), b = placeOf(product.getRhs());
  forResult(op, [&](Value index, ValueRange) {
    Value column = emit.rem(index, emit.integer(columns)), line = emit.div(index, emit.integer(columns));
    Value i = emit.rem(line, emit.integer(height)), matrix = emit.div(line, emit.integer(height));
    Value aMatrix = emit.address(a, f32, emit.mul(matrix, height * depth));
    Value bMatrix = shared ? b : emit.address(b, f32, emit.mul(matrix, depth * columns));
    return emit.loop(emit.integer(0), emit.integer(depth), 1, emit.zeros(f32), [&](Value k, ValueRange sum) {
      Value x = transposeA ? emit.add(emit.mul(k, height), i) : emit.add(emit.mul(i, depth), k);
      Value y = transposeB ? emit.add(emit.mul(column, depth), k) : emit.add(emit.mul(k, columns), column);
      return Emitter::Values{emit.fma(emit.load(f32, emit.address(aMatrix, f32, x)),
                                      emit.load(f32, emit.address(bMatrix, f32, y)), sum[0])};
    })[0];
  });
  return true;
}

LogicalResult BlockRows::runMove(Operation *op) {
  if (runShape(op) || runReduction(op) || runWindow(op) || runLookup(op))
    return success();
  return op->emitError("expected an operation that kernels of rows can compute on a GPU");
}
