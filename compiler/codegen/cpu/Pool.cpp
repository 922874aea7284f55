// SPDX-License-Identifier: Apache-2.0
//
// Pools: vectors along the channels, one window after the other, its taps in order.
#include "compiler/codegen/cpu/Pool.h"
#include "compiler/codegen/common/Rules.h"
#include "compiler/codegen/cpu/Copy.h"
#include "compiler/codegen/cpu/Lines.h"

using namespace mlir;
using namespace mtc;

static constexpr int64_t maxUnrolledTaps = 16;

namespace {
class PoolEmitter {
public:
  PoolEmitter(Emitter &emit, const mt::Pooling &pool) : emit(emit), pool(pool) {}

  // A window: its element in y, and the element of its first tap in x, which may be in the padding.
  struct Position {
    Value oh, ow, channel, mask, output, input;
  };
  void forWindows(llvm::function_ref<void(const Position &)> each);
  // Iterates over the taps inside the image, in order: body(offset from the first tap's element, number of the tap,
  // carried).
  using Body = llvm::function_ref<Emitter::Values(Value offset, Value tap, ValueRange carried)>;
  Emitter::Values overTaps(const Position &position, ValueRange carried, Body body);
  // Whether every input is in exactly one window.
  bool partitions() const {
    auto once = [](const mt::Window &w) {
      return w.stride == w.taps && w.low == 0 && w.outputs * w.stride == w.inputs;
    };
    return once(pool.rows) && once(pool.columns);
  }

private:
  Emitter &emit;
  const mt::Pooling &pool;

  static bool inside(const mt::Window &w) { return w.low == 0 && (w.outputs - 1) * w.stride + w.taps <= w.inputs; }
  Emitter::Values overAxis(const mt::Window &window, Value output, ValueRange carried,
                           llvm::function_ref<Emitter::Values(Value tap, ValueRange carried)> body);
};
} // namespace

void PoolEmitter::forWindows(llvm::function_ref<void(const Position &)> each) {
  auto along = [&](int64_t count, llvm::function_ref<void(Value)> body) {
    emit.loop(emit.integer(0), emit.integer(count), 1, body);
  };
  int64_t channels = pool.channels, whole = channels / lanes * lanes;
  along(pool.rows.outputs, [&](Value oh) {
    along(pool.columns.outputs, [&](Value ow) {
      Value pixel = emit.add(emit.mul(oh, pool.columns.outputs), ow);
      Value row = emit.add(emit.mul(oh, pool.rows.stride), -pool.rows.low);
      Value column = emit.add(emit.mul(ow, pool.columns.stride), -pool.columns.low);
      Value first = emit.add(emit.mul(row, pool.columns.inputs), column);
      auto one = [&](Value channel, Value mask) {
        each({oh, ow, channel, mask, emit.add(emit.mul(pixel, channels), channel),
              emit.add(emit.mul(first, channels), channel)});
      };
      if (whole > 0)
        emit.loop(emit.integer(0), emit.integer(whole), lanes, [&](Value channel) { one(channel, Value()); });
      if (whole < channels)
        one(emit.integer(whole), emit.maskBelow(channels - whole));
    });
  });
}

Emitter::Values PoolEmitter::overAxis(const mt::Window &window, Value output, ValueRange carried,
                                      llvm::function_ref<Emitter::Values(Value, ValueRange)> body) {
  Emitter::Values values(carried);
  if (inside(window) && pool.rows.taps * pool.columns.taps <= maxUnrolledTaps) {
    for (int64_t tap = 0; tap < window.taps; ++tap)
      values = body(emit.integer(tap), values);
    return values;
  }
  auto [first, end] = tapsInside(emit, window, output);
  if (carried.empty()) {
    emit.loop(first, end, 1, [&](Value tap) { body(tap, {}); });
    return values;
  }
  return emit.loop(first, end, 1, values, [&](Value tap, ValueRange inner) { return body(tap, inner); });
}

Emitter::Values PoolEmitter::overTaps(const Position &position, ValueRange carried, Body body) {
  return overAxis(pool.rows, position.oh, carried, [&](Value kh, ValueRange outer) {
    return overAxis(pool.columns, position.ow, outer, [&](Value kw, ValueRange inner) {
      Value pixel = emit.add(emit.mul(kh, pool.columns.inputs), kw);
      return body(emit.mul(pixel, pool.channels), emit.add(emit.mul(kh, pool.columns.taps), kw), inner);
    });
  });
}

void mtc::emitWindows(Emitter &emit, mt::WindowOpInterface op, Value x, Value y) {
  Type f32 = emit.realType(), element = elementOf(op.getInput());
  mt::Pooling pool = op.getPooling();
  PoolEmitter windows(emit, pool);
  windows.forWindows([&](const PoolEmitter::Position &position) {
    Value first = emit.address(x, element, position.input), start = emit.splat(startOf(emit, op));
    Value result = windows.overTaps(position, start, [&](Value offset, Value, ValueRange carried) {
      Value taken = emit.loadLanes(element, emit.address(first, element, offset), position.mask);
      return Emitter::Values{op.foldElement(emit, carried[0], taken)};
    })[0];
    emit.storeLanes(op.finishWindow(emit, result), emit.address(y, f32, position.output), position.mask);
  });
}

void mtc::emitWindowGradient(Emitter &emit, mt::WindowGradientOpInterface op, Value dy, Value x, Value dx) {
  Type f32 = emit.realType(), i32 = emit.getI32Type(), given = elementOf(op.getGradient());
  Type element = x ? elementOf(op.getInput()) : f32;
  mt::Pooling pool = op.getPooling();
  PoolEmitter windows(emit, pool);
  bool once = windows.partitions();
  if (!once)
    emitFill(emit, f32, emit.zeros(f32), dx, pool.rows.inputs * pool.columns.inputs * pool.channels);
  auto splatTap = [&](Value tap) { return emit.splat(arith::TruncIOp::create(emit, i32, tap)); };
  windows.forWindows([&](const PoolEmitter::Position &position) {
    Value gradient = emit.loadLanes(given, emit.address(dy, given, position.output), position.mask), winner;
    if (x) {
      // Number of the tap with the first largest element.
      Value first = emit.address(x, element, position.input);
      Emitter::Values start{emit.splat(identityOf(emit, mt::Reduction::max, element)),
                            emit.splat(arith::ConstantOp::create(emit, emit.getI32IntegerAttr(-1)))};
      winner = windows.overTaps(position, start, [&](Value offset, Value tap, ValueRange best) {
        Value taken = emit.loadLanes(element, emit.address(first, element, offset), position.mask);
        return firstLargest(emit, best, taken, splatTap(tap));
      })[1];
    }
    Value target = emit.address(dx, f32, position.input), zeros = emit.zeros(emit.vectorOf(f32));
    windows.overTaps(position, {}, [&](Value offset, Value tap, ValueRange) {
      Value to = emit.address(target, f32, offset), share = gradient;
      if (winner) {
        Value mine = arith::CmpIOp::create(emit, arith::CmpIPredicate::eq, winner, splatTap(tap));
        share = arith::SelectOp::create(emit, mine, gradient, zeros);
      }
      Value sum = once ? zeros : emit.loadLanes(f32, to, position.mask);
      emit.storeLanes(arith::AddFOp::create(emit, sum, share), to, position.mask);
      return Emitter::Values();
    });
  });
}
