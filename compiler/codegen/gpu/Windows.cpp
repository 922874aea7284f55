// SPDX-License-Identifier: Apache-2.0
//
// Pools and lookups of a row: an element of the result is one thread's, its terms in the order of the op.
#include "compiler/codegen/Lines.h"
#include "compiler/codegen/gpu/BlockRows.h"

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

void BlockRows::pool(mt::PoolOp op) {
  Type f32 = emit.getF32Type();
  mt::Pooling pool = op.getPooling();
  Value x = placeOf(op.getInput());
  forResult(op, [&](Value, ValueRange at) {
    return overTaps(emit, pool.rows, at[0], identityOf(emit, op.getKind()), [&](Value kh, ValueRange outer) {
      return overTaps(emit, pool.columns, at[1], outer, [&](Value kw, ValueRange running) {
        Value ih = inputOf(emit, pool.rows, at[0], kh), iw = inputOf(emit, pool.columns, at[1], kw);
        Value index = flatten(emit, {ih, iw, at[2]}, innerShape(op.getInput()));
        return Emitter::Values{combine(emit, op.getKind(), running[0], emit.load(f32, emit.address(x, f32, index)))};
      });
    })[0];
  });
}

// The gradients of all windows that hold the element; for max, of those whose first largest element it is.
void BlockRows::poolGradient(mt::PoolGradientOp op) {
  Type f32 = emit.getF32Type();
  mt::Pooling pool = op.getPooling();
  Value dy = placeOf(op.getGradient()), x = op.getInput() ? placeOf(op.getInput()) : Value();
  ArrayRef<int64_t> images = innerShape(op.getResult()), windows = innerShape(op.getGradient());
  auto winner = [&](Value oh, Value ow, Value channel) {
    Emitter::Values start{identityOf(emit, mt::Reduction::max), emit.integer(-1)};
    return overTaps(emit, pool.rows, oh, start, [&](Value kh, ValueRange outer) {
      return overTaps(emit, pool.columns, ow, outer, [&](Value kw, ValueRange best) {
        Value index =
            flatten(emit, {inputOf(emit, pool.rows, oh, kh), inputOf(emit, pool.columns, ow, kw), channel}, images);
        Value taken = emit.load(f32, emit.address(x, f32, index));
        Value none = emit.less(best[1], emit.integer(0));
        Value larger = arith::CmpFOp::create(emit, arith::CmpFPredicate::OGT, taken, best[0]);
        Value better = arith::OrIOp::create(emit, larger, none);
        return Emitter::Values{arith::SelectOp::create(emit, better, taken, best[0]),
                               arith::SelectOp::create(emit, better, index, best[1])};
      });
    })[1];
  };
  forResult(op, [&](Value index, ValueRange at) {
    return overOutputs(emit, pool.rows, at[0], emit.zeros(f32), [&](Value oh, ValueRange outer) {
      return overOutputs(emit, pool.columns, at[1], outer, [&](Value ow, ValueRange sum) {
        Value share = emit.load(f32, emit.address(dy, f32, flatten(emit, {oh, ow, at[2]}, windows)));
        if (x)
          share = arith::SelectOp::create(emit, emit.equal(winner(oh, ow, at[2]), index), share, emit.zeros(f32));
        return Emitter::Values{arith::AddFOp::create(emit, sum[0], share)};
      });
    })[0];
  });
}

bool BlockRows::runWindow(Operation *op) {
  if (auto forward = dyn_cast<mt::PoolOp>(op))
    return pool(forward), true;
  if (auto gradient = dyn_cast<mt::PoolGradientOp>(op))
    return poolGradient(gradient), true;
  return false;
}

// The row of a table that an id names, as i64.
static Value clampedId(Emitter &emit, Value ids, Value index, int64_t entries) {
  Type i32 = emit.getI32Type();
  Value id = arith::ExtSIOp::create(emit, emit.getI64Type(), emit.load(i32, emit.address(ids, i32, index)));
  return emit.least(emit.most(id, emit.integer(0)), emit.integer(entries - 1));
}

// Of `count` ids, the sum of what `load(index)` gives for those that name `entry`, in order.
static Value sumOfNamed(Emitter &emit, Value ids, int64_t count, int64_t entries, Value entry,
                        llvm::function_ref<Value(Value)> load) {
  return emit.loop(
      emit.integer(0), emit.integer(count), 1, emit.zeros(emit.getF32Type()), [&](Value index, ValueRange sum) {
        Value named = emit.equal(clampedId(emit, ids, index, entries), entry);
        return Emitter::Values{
            choose(emit, named, [&]() -> Value { return arith::AddFOp::create(emit, sum[0], load(index)); }, sum[0])};
      })[0];
}

bool BlockRows::runLookup(Operation *op) {
  Type f32 = emit.getF32Type();
  if (auto gather = dyn_cast<mt::GatherOp>(op)) {
    int64_t entries = tensorOf(gather.getTable()).getDimSize(0), width = innerCount(gather.getTable()) / entries;
    Value table = placeOf(gather.getTable()), ids = placeOf(gather.getIds());
    Type element = elementOf(gather.getTable());
    forResult(op, [&](Value index, ValueRange) {
      Value row = clampedId(emit, ids, emit.div(index, emit.integer(width)), entries);
      Value from = emit.add(emit.mul(row, width), emit.rem(index, emit.integer(width)));
      return emit.load(element, emit.address(table, element, from));
    });
    return true;
  }
  if (auto scatter = dyn_cast<mt::ScatterAddOp>(op)) {
    int64_t entries = scatter.getType().getDimSize(0), width = innerCount(scatter.getResult()) / entries;
    Value ids = placeOf(scatter.getIds()), updates = placeOf(scatter.getUpdates());
    forResult(op, [&](Value index, ValueRange) {
      Value entry = emit.div(index, emit.integer(width)), column = emit.rem(index, emit.integer(width));
      return sumOfNamed(emit, ids, innerCount(scatter.getIds()), entries, entry, [&](Value id) {
        return emit.load(f32, emit.address(updates, f32, emit.add(emit.mul(id, width), column)));
      });
    });
    return true;
  }
  if (auto take = dyn_cast<mt::TakeOp>(op)) {
    int64_t axis = take.getDim() - 1;
    Value from = placeOf(take.getOperand()), ids = placeOf(take.getIds());
    forResult(op, [&](Value, ValueRange at) {
      Emitter::Values source(at);
      source[axis] = clampedId(emit, ids, at[axis], innerShape(take.getOperand())[axis]);
      return loadAt(take.getOperand(), from, source);
    });
    return true;
  }
  auto put = dyn_cast<mt::PutAddOp>(op);
  if (!put)
    return false;
  int64_t axis = put.getDim() - 1, count = innerShape(put.getUpdates())[axis];
  Value ids = placeOf(put.getIds()), updates = placeOf(put.getUpdates());
  forResult(op, [&](Value, ValueRange at) {
    return sumOfNamed(emit, ids, count, innerShape(op->getResult(0))[axis], at[axis], [&](Value id) {
      Emitter::Values source(at);
      source[axis] = id;
      return loadAt(put.getUpdates(), updates, source);
    });
  });
  return true;
}
