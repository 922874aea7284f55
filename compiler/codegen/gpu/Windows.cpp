// SPDX-License-Identifier: Apache-2.0
//
// An element of a pool, its gradient, a lookup or its gradient: terms in the order of the op.
#include "compiler/codegen/common/Reduction.h"
#include "compiler/codegen/gpu/Elements.h"

using namespace mlir;
using namespace mtc;

// Taps of an output that lie in the image.
static Emitter::Values overTaps(Emitter &emit, const mt::Window &window, Value output, ValueRange carried,
                                Emitter::Body body) {
  Value start = emit.add(emit.mul(output, window.stride), -window.low);
  Value first = emit.most(emit.integer(0), emit.sub(emit.integer(0), start));
  Value end = emit.least(emit.integer(window.taps), emit.sub(emit.integer(window.inputs), start));
  return emit.loop(first, end, 1, carried, body);
}

// Outputs whose window holds an input, in order; windows of pools have no dilation.
static Emitter::Values overOutputs(Emitter &emit, const mt::Window &window, Value input, ValueRange carried,
                                   Emitter::Body body) {
  Value place = emit.add(input, window.low);
  Value first = emit.ceilDiv(emit.most(emit.add(place, 1 - window.taps), emit.integer(0)), window.stride);
  Value end = emit.least(emit.add(emit.div(place, emit.integer(window.stride)), 1), emit.integer(window.outputs));
  return emit.loop(first, end, 1, carried, body);
}

static Value inputOf(Emitter &emit, const mt::Window &window, Value output, Value tap) {
  return emit.add(emit.add(emit.mul(output, window.stride), tap), -window.low);
}

Value BlockElements::pool(mt::PoolOp op, ValueRange at) {
  mt::Pooling pool = op.getPooling();
  return overTaps(emit, pool.rows, at[0], identityOf(emit, op.getKind()), [&](Value kh, ValueRange outer) {
    return overTaps(emit, pool.columns, at[1], outer, [&](Value kw, ValueRange running) {
      Value ih = inputOf(emit, pool.rows, at[0], kh), iw = inputOf(emit, pool.columns, at[1], kw);
      return Emitter::Values{combine(emit, op.getKind(), running[0], atPlace(op.getInput(), {ih, iw, at[2]}))};
    });
  })[0];
}

// The gradients of all windows that hold the element; for max, of those whose first largest element it is.
Value BlockElements::poolGradient(mt::PoolGradientOp op, Value index, ValueRange at) {
  mt::Pooling pool = op.getPooling();
  Value x = op.getInput();
  ArrayRef<int64_t> images = innerShape(op.getResult());
  auto winner = [&](Value oh, Value ow) {
    Emitter::Values start{identityOf(emit, mt::Reduction::max), emit.integer(-1)};
    return overTaps(emit, pool.rows, oh, start, [&](Value kh, ValueRange outer) {
      return overTaps(emit, pool.columns, ow, outer, [&](Value kw, ValueRange best) {
        Value ih = inputOf(emit, pool.rows, oh, kh), iw = inputOf(emit, pool.columns, ow, kw);
        Value place = flatten(emit, {ih, iw, at[2]}, images);
        Value taken = this->at(x, place);
        Value none = emit.less(best[1], emit.integer(0));
        Value larger = arith::CmpFOp::create(emit, arith::CmpFPredicate::OGT, taken, best[0]);
        Value better = arith::OrIOp::create(emit, larger, none);
        return Emitter::Values{arith::SelectOp::create(emit, better, taken, best[0]),
                               arith::SelectOp::create(emit, better, place, best[1])};
      });
    })[1];
  };
  Value zero = emit.zeros(emit.getF32Type());
  return overOutputs(emit, pool.rows, at[0], zero, [&](Value oh, ValueRange outer) {
    return overOutputs(emit, pool.columns, at[1], outer, [&](Value ow, ValueRange sum) {
      Value share = atPlace(op.getGradient(), {oh, ow, at[2]});
      if (x)
        share = arith::SelectOp::create(emit, emit.equal(winner(oh, ow), index), share, zero);
      return Emitter::Values{arith::AddFOp::create(emit, sum[0], share)};
    });
  })[0];
}

Value BlockElements::windowed(Operation *op, Value index, ValueRange at) {
  if (auto forward = dyn_cast<mt::PoolOp>(op))
    return pool(forward, at);
  if (auto gradient = dyn_cast<mt::PoolGradientOp>(op))
    return poolGradient(gradient, index, at);
  auto gradient = dyn_cast<mt::Conv2DKernelGradientOp>(op);
  return gradient ? kernelGradient(gradient, at) : Value();
}

// The row of a table that an id names, as i64.
Value BlockElements::clampedId(Value ids, Value index, int64_t entries) {
  Value id = arith::ExtSIOp::create(emit, emit.getI64Type(), at(ids, index));
  return emit.least(emit.most(id, emit.integer(0)), emit.integer(entries - 1));
}

// Of `count` ids, the sum of what `element(index)` gives for those that name `entry`, in order.
Value BlockElements::sumOfNamed(Value ids, int64_t entries, Value entry, int64_t count,
                                llvm::function_ref<Value(Value)> element) {
  return emit.loop(emit.integer(0), emit.integer(count), 1, emit.zeros(emit.getF32Type()),
                   [&](Value index, ValueRange sum) {
                     Value named = emit.equal(clampedId(ids, index, entries), entry);
                     auto add = [&]() -> Value { return arith::AddFOp::create(emit, sum[0], element(index)); };
                     return Emitter::Values{choose(emit, named, add, sum[0])};
                   })[0];
}

Value BlockElements::lookedUp(Operation *op, Value index, ValueRange at) {
  Emitter::Values source(at);
  if (auto gather = dyn_cast<mt::GatherOp>(op)) {
    int64_t entries = tensorOf(gather.getTable()).getDimSize(0), width = innerCount(gather.getTable()) / entries;
    Value line = clampedId(gather.getIds(), emit.div(index, emit.integer(width)), entries);
    return this->at(gather.getTable(), emit.add(emit.mul(line, width), emit.rem(index, emit.integer(width))));
  }
  if (auto scatter = dyn_cast<mt::ScatterAddOp>(op)) {
    int64_t entries = scatter.getType().getDimSize(0), width = innerCount(scatter.getResult()) / entries;
    Value entry = emit.div(index, emit.integer(width)), column = emit.rem(index, emit.integer(width));
    return sumOfNamed(scatter.getIds(), entries, entry, innerCount(scatter.getIds()),
                      [&](Value id) { return this->at(scatter.getUpdates(), emit.add(emit.mul(id, width), column)); });
  }
  if (auto take = dyn_cast<mt::TakeOp>(op)) {
    int64_t axis = take.getDim() - 1;
    source[axis] = clampedId(take.getIds(), at[axis], innerShape(take.getOperand())[axis]);
    return atPlace(take.getOperand(), source);
  }
  auto put = dyn_cast<mt::IndexAddOp>(op);
  if (!put)
    return {};
  int64_t axis = put.getDim() - 1;
  return sumOfNamed(put.getIds(), innerShape(op->getResult(0))[axis], at[axis], innerShape(put.getUpdates())[axis],
                    [&](Value id) {
                      source[axis] = id;
                      return atPlace(put.getUpdates(), source);
                    });
}
