// SPDX-License-Identifier: Apache-2.0
//
// An element of a pool, its gradient, a lookup or its gradient: terms in the order of the op.
#include "compiler/codegen/common/Rules.h"
#include "compiler/codegen/gpu/Elements.h"

using namespace mlir;
using namespace mtc;

static constexpr int64_t maxUnrolledTaps = 3;

// Loops over the taps of an output that are inside the image. If there are few taps and no padding, all elements are
// loaded before the first is used.
static Emitter::Values overTaps(Emitter &emit, const mt::Window &window, Value output, ValueRange carried,
                                Emitter::Body body) {
  if (areTapsInside(window) && window.taps <= maxUnrolledTaps) {
    Emitter::Values values(carried);
    for (int64_t tap = 0; tap < window.taps; ++tap)
      values = body(emit.integer(tap), values);
    return values;
  }
  auto [first, end] = tapsInside(emit, window, output);
  return emit.loop(first, end, 1, carried, body);
}

// Loops over the outputs whose windows contain an input, in order; windows of pools have no dilation.
static Emitter::Values overOutputs(Emitter &emit, const mt::Window &window, Value input, ValueRange carried,
                                   Emitter::Body body) {
  Value padded = emit.add(input, window.low);
  Value first = emit.ceilDiv(emit.max(emit.add(padded, 1 - window.taps), emit.integer(0)), window.stride);
  Value end = emit.min(emit.add(emit.div(padded, emit.integer(window.stride)), 1), emit.integer(window.outputs));
  return emit.loop(first, end, 1, carried, body);
}

static Value inputOf(Emitter &emit, const mt::Window &window, Value output, Value tap) {
  return emit.add(emit.add(emit.mul(output, window.stride), tap), -window.low);
}

Emitter::Values BlockElements::folded(mt::WindowOpInterface op, ValueRange at, int64_t vectorWidth) {
  mt::Pooling pool = op.getPooling();
  Emitter::Values start(vectorWidth, startOf(emit, op));
  Emitter::Values results = overTaps(emit, pool.rows, at[0], start, [&](Value kh, ValueRange outer) {
    return overTaps(emit, pool.columns, at[1], outer, [&](Value kw, ValueRange running) {
      Value ih = inputOf(emit, pool.rows, at[0], kh), iw = inputOf(emit, pool.columns, at[1], kw);
      Emitter::Values next = adjacent(op.getInput(), {ih, iw, at[2]}, vectorWidth);
      for (auto [value, before] : llvm::zip_equal(next, running))
        value = op.foldElement(emit, before, value);
      return next;
    });
  });
  for (Value &result : results)
    result = op.finishWindow(emit, result);
  return results;
}

// The gradients of all windows that contain the element; for max, of the windows whose first largest element it is.
Emitter::Values BlockElements::windowGradient(mt::WindowGradientOpInterface op, Value index, ValueRange at,
                                              int64_t vectorWidth) {
  mt::Pooling pool = op.getPooling();
  Value x = op.getInput();
  ArrayRef<int64_t> images = innerShape(op->getResult(0));
  Emitter::Values own = x ? adjacent(x, index, vectorWidth) : Emitter::Values();
  // Whether firstLargest would find the elements: each is larger than all before, and none after is larger.
  auto wins = [&](Value oh, Value ow) {
    auto position = [&](Value kh, Value kw) {
      return Emitter::Values{inputOf(emit, pool.rows, oh, kh), inputOf(emit, pool.columns, ow, kw), at[2]};
    };
    Value always = arith::ConstantOp::create(emit, emit.getBoolAttr(true));
    Emitter::Values start(vectorWidth, always);
    return overTaps(emit, pool.rows, oh, start, [&](Value kh, ValueRange outer) {
      return overTaps(emit, pool.columns, ow, outer, [&](Value kw, ValueRange running) {
        Emitter::Values tap = position(kh, kw), next(running);
        Value isBefore = emit.less(flatten(emit, tap, images), index);
        for (auto [wins, element, mine] : llvm::zip_equal(next, adjacent(x, tap, vectorWidth), own)) {
          Value keeps = arith::XOrIOp::create(emit, beats(emit, element, mine), always);
          wins = both(emit, wins, arith::SelectOp::create(emit, isBefore, beats(emit, mine, element), keeps));
        }
        return next;
      });
    });
  };
  Value zero = emit.zeros(emit.getF32Type());
  Emitter::Values zeros(vectorWidth, zero);
  return overOutputs(emit, pool.rows, at[0], zeros, [&](Value oh, ValueRange outer) {
    return overOutputs(emit, pool.columns, at[1], outer, [&](Value ow, ValueRange sums) {
      Emitter::Values shares = adjacent(op.getGradient(), {oh, ow, at[2]}, vectorWidth);
      Emitter::Values isLargest = x ? wins(oh, ow) : Emitter::Values();
      for (int64_t lane = 0; lane < vectorWidth; ++lane) {
        if (x)
          shares[lane] = arith::SelectOp::create(emit, isLargest[lane], shares[lane], zero);
        shares[lane] = arith::AddFOp::create(emit, sums[lane], shares[lane]);
      }
      return shares;
    });
  });
}

// For a chunk of adjacent channels, which share the taps of their windows.
Value BlockElements::inWindow(const Position &position, Operation *op) {
  Chunk &chunk = *position.chunk;
  Emitter::Values &values = chunk.elements[op->getResult(0)];
  if (values.empty()) {
    OpBuilder::InsertionGuard guard(emit);
    emit.setInsertionPointAfter(chunk.before);
    Emitter::Values at = coordinates(emit, chunk.first, innerShape(op->getResult(0)));
    if (auto pool = dyn_cast<mt::WindowOpInterface>(op))
      values = folded(pool, at, chunk.vectorWidth);
    else
      values = windowGradient(cast<mt::WindowGradientOpInterface>(op), chunk.first, at, chunk.vectorWidth);
  }
  return values[position.lane];
}

// An element of a line that is looked up, or of the sum of the lines whose ids select its own line, in the order of the
// ids.
Value BlockElements::lookedUp(mt::LookupOpInterface op, Value index) {
  mt::Lookup lookup = op.getLookup();
  Value width = emit.integer(lookup.width), column = emit.rem(index, width), line = emit.div(index, width);
  auto entryAt = [&](Value number) { return entryOf(emit, at(lookup.ids, number), lookup.entries); };
  // An element of the same column and outer index, in line `number` of `lines`.
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
