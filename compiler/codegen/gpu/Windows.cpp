// SPDX-License-Identifier: Apache-2.0
//
// An element of a pool, its gradient, a lookup or its gradient: terms in the order of the op.
#include "compiler/codegen/common/Rules.h"
#include "compiler/codegen/gpu/Elements.h"

using namespace mlir;
using namespace mtc;

// Taps of an output that lie in the image.
static Emitter::Values overTaps(Emitter &emit, const mt::Window &window, Value output, ValueRange carried,
                                Emitter::Body body) {
  auto [first, end] = tapsInside(emit, window, output);
  return emit.loop(first, end, 1, carried, body);
}

// Outputs whose window holds an input, in order; windows of pools have no dilation.
static Emitter::Values overOutputs(Emitter &emit, const mt::Window &window, Value input, ValueRange carried,
                                   Emitter::Body body) {
  Value padded = emit.add(input, window.low);
  Value first = emit.ceilDiv(emit.most(emit.add(padded, 1 - window.taps), emit.integer(0)), window.stride);
  Value end = emit.least(emit.add(emit.div(padded, emit.integer(window.stride)), 1), emit.integer(window.outputs));
  return emit.loop(first, end, 1, carried, body);
}

static Value inputOf(Emitter &emit, const mt::Window &window, Value output, Value tap) {
  return emit.add(emit.add(emit.mul(output, window.stride), tap), -window.low);
}

Value BlockElements::folded(mt::WindowOpInterface op, ValueRange at) {
  mt::Pooling pool = op.getPooling();
  Value result = overTaps(emit, pool.rows, at[0], startOf(emit, op), [&](Value kh, ValueRange outer) {
    return overTaps(emit, pool.columns, at[1], outer, [&](Value kw, ValueRange running) {
      Value ih = inputOf(emit, pool.rows, at[0], kh), iw = inputOf(emit, pool.columns, at[1], kw);
      return Emitter::Values{op.foldElement(emit, running[0], atCoordinates(op.getInput(), {ih, iw, at[2]}))};
    });
  })[0];
  return op.finishWindow(emit, result);
}

// The gradients of all windows that hold the element; for max, of those whose first largest element it is.
Value BlockElements::windowGradient(mt::WindowGradientOpInterface op, Value index, ValueRange at) {
  mt::Pooling pool = op.getPooling();
  Value x = op.getInput();
  ArrayRef<int64_t> images = innerShape(op->getResult(0));
  auto winner = [&](Value oh, Value ow) {
    Emitter::Values start{identityOf(emit, mt::Reduction::max), emit.integer(-1)};
    return overTaps(emit, pool.rows, oh, start, [&](Value kh, ValueRange outer) {
      return overTaps(emit, pool.columns, ow, outer, [&](Value kw, ValueRange best) {
        Value ih = inputOf(emit, pool.rows, oh, kh), iw = inputOf(emit, pool.columns, ow, kw);
        Value number = flatten(emit, {ih, iw, at[2]}, images);
        return firstLargest(emit, best, this->at(x, number), number);
      });
    })[1];
  };
  Value zero = emit.zeros(emit.getF32Type());
  return overOutputs(emit, pool.rows, at[0], zero, [&](Value oh, ValueRange outer) {
    return overOutputs(emit, pool.columns, at[1], outer, [&](Value ow, ValueRange sum) {
      Value share = atCoordinates(op.getGradient(), {oh, ow, at[2]});
      if (x)
        share = arith::SelectOp::create(emit, emit.equal(winner(oh, ow), index), share, zero);
      return Emitter::Values{arith::AddFOp::create(emit, sum[0], share)};
    });
  })[0];
}

// An element of a looked up line; or of the sum of those lines whose ids name its own, in order of the ids.
Value BlockElements::lookedUp(mt::LookupOpInterface op, Value index) {
  mt::Lookup lookup = op.getLookup();
  Value width = emit.integer(lookup.width), column = emit.rem(index, width), line = emit.div(index, width);
  auto entryAt = [&](Value number) { return entryOf(emit, at(lookup.ids, number), lookup.entries); };
  // An element of the same column and outer index, of line `number` of `lines`.
  auto element = [&](Value block, int64_t lines, Value number) {
    Value source = block ? emit.add(emit.mul(block, lines), number) : number;
    return at(lookup.source, emit.add(emit.mul(source, width), column));
  };
  Value own = emit.integer(lookup.adds ? lookup.entries : lookup.count);
  Value block = lookup.outer > 1 ? emit.div(line, own) : Value(), number = block ? emit.rem(line, own) : line;
  if (!lookup.adds)
    return element(block, lookup.entries, entryAt(number));
  return emit.loop(
      emit.integer(0), emit.integer(lookup.count), 1, emit.zeros(emit.getF32Type()), [&](Value id, ValueRange sum) {
        auto add = [&]() -> Value { return arith::AddFOp::create(emit, sum[0], element(block, lookup.count, id)); };
        return Emitter::Values{choose(emit, emit.equal(entryAt(id), number), add, sum[0])};
      })[0];
}
