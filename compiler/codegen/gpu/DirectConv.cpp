// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and their gradients that are not computed as products (Image.h), such as depthwise ones: each thread
// computes one element of the result. Chains have the order of the CPU's, without the zeros of the padding.
#include "compiler/codegen/gpu/Elements.h"
#include "compiler/codegen/gpu/Image.h"
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "compiler/codegen/gpu/Tree.h"
#include "dialects/mt/KernelKinds.h"
#include "dialects/mt/Window.h"

using namespace mlir;
using namespace mtc;

namespace {
// Emits multiplications and additions for one index of x [H, W, C], w [KH, KW, C / g, F], y [OH, OW, F].
struct Direct {
  BlockKernel &kernel;
  mt::Convolution conv;
  Value x, w, y;                                                  // in memory; two of the three are read
  std::function<Value(Value index)> elementX = {}, elementY = {}; // instead of reading memory
  Type typeX = {}, typeW = {}, typeY = {};                        // element types in memory
  Emitter &emit = kernel.emit;

  Value loadX(Value ih, Value iw, Value c) {
    Value index = flatten(emit, {ih, iw, c}, {conv.rows.inputs, conv.columns.inputs, conv.channels});
    return elementX ? elementX(index) : load(x, typeX, index);
  }
  Value loadW(Value kh, Value kw, Value c, Value f) {
    return load(w, typeW,
                flatten(emit, {kh, kw, c, f}, {conv.rows.taps, conv.columns.taps, conv.groupChannels(), conv.filters}));
  }
  Value loadY(Value oh, Value ow, Value f) {
    Value index = flatten(emit, {oh, ow, f}, {conv.rows.outputs, conv.columns.outputs, conv.filters});
    return elementY ? elementY(index) : load(y, typeY, index);
  }
  Value load(Value base, Type element, Value index) { return emit.load(element, emit.address(base, element, index)); }
  Value inputOf(const mt::Window &window, Value output, Value tap) {
    return emit.add(emit.add(emit.mul(output, window.stride), emit.mul(tap, window.dilation)), -window.low);
  }
  Value group(Value channel, int64_t size) { return emit.div(channel, emit.integer(size)); }

  Value forward(Value oh, Value ow, Value f);
  Value toImages(Value ih, Value iw, Value c);
  // The sum over one sample, added to `sum`.
  Value toKernel(Value kh, Value kw, Value c, Value f, Value sum);

private:
  // Loops over the taps of an output that are inside the image.
  Value overTaps(const mt::Window &window, Value output, Value sum,
                 llvm::function_ref<Value(Value tap, Value input, Value sum)> each);
  // Loops over the outputs that read an input, in order.
  Value overOutputs(const mt::Window &window, Value input, Value sum,
                    llvm::function_ref<Value(Value output, Value tap, Value sum)> each);
  // Loops over the outputs whose tap is inside the image.
  Value overInside(const mt::Window &window, Value tap, Value sum,
                   llvm::function_ref<Value(Value output, Value input, Value sum)> each);
  Value loop(Value from, Value to, Value sum, llvm::function_ref<Value(Value index, Value sum)> each) {
    return emit.loop(from, to, 1, sum,
                     [&](Value index, ValueRange carried) { return Emitter::Values{each(index, carried[0])}; })[0];
  }
};
} // namespace

Value Direct::overTaps(const mt::Window &window, Value output, Value sum,
                       llvm::function_ref<Value(Value, Value, Value)> each) {
  Value zero = emit.integer(0), start = emit.add(emit.mul(output, window.stride), -window.low);
  Value first = emit.ceilDiv(emit.max(zero, emit.sub(zero, start)), window.dilation);
  Value end = emit.ceilDiv(emit.max(zero, emit.sub(emit.integer(window.inputs), start)), window.dilation);
  return loop(first, emit.min(end, emit.integer(window.taps)), sum,
              [&](Value tap, Value running) { return each(tap, inputOf(window, output, tap), running); });
}

Value Direct::overOutputs(const mt::Window &window, Value input, Value sum,
                          llvm::function_ref<Value(Value, Value, Value)> each) {
  return loop(emit.integer(0), emit.integer(window.taps), sum, [&](Value back, Value running) {
    Value tap = emit.sub(emit.integer(window.taps - 1), back);
    Value distance = emit.sub(emit.add(input, window.low), emit.mul(tap, window.dilation));
    Value output = emit.div(distance, emit.integer(window.stride));
    Value hits = emit.equal(emit.mul(output, window.stride), distance);
    hits = both(emit, hits,
                both(emit, emit.less(emit.integer(-1), distance), emit.less(output, emit.integer(window.outputs))));
    return choose(emit, hits, [&] { return each(output, tap, running); }, running);
  });
}

Value Direct::overInside(const mt::Window &window, Value tap, Value sum,
                         llvm::function_ref<Value(Value, Value, Value)> each) {
  return loop(emit.integer(0), emit.integer(window.outputs), sum, [&](Value output, Value running) {
    Value input = inputOf(window, output, tap);
    Value inside = both(emit, emit.less(emit.integer(-1), input), emit.less(input, emit.integer(window.inputs)));
    return choose(emit, inside, [&] { return each(output, input, running); }, running);
  });
}

Value Direct::forward(Value oh, Value ow, Value f) {
  Value firstChannel = emit.mul(group(f, conv.groupFilters()), conv.groupChannels());
  return overTaps(conv.rows, oh, emit.zeros(emit.getF32Type()), [&](Value kh, Value ih, Value rows) {
    return loop(emit.integer(0), emit.integer(conv.groupChannels()), rows, [&](Value c, Value channels) {
      return overTaps(conv.columns, ow, channels, [&](Value kw, Value iw, Value sum) {
        return emit.fma(loadX(ih, iw, emit.add(firstChannel, c)), loadW(kh, kw, c, f), sum);
      });
    });
  });
}

Value Direct::toImages(Value ih, Value iw, Value channel) {
  Value mine = group(channel, conv.groupChannels()), c = emit.rem(channel, emit.integer(conv.groupChannels()));
  Value firstFilter = emit.mul(mine, conv.groupFilters());
  return overOutputs(conv.rows, ih, emit.zeros(emit.getF32Type()), [&](Value oh, Value kh, Value rows) {
    return loop(emit.integer(0), emit.integer(conv.groupFilters()), rows, [&](Value filter, Value filters) {
      Value f = emit.add(firstFilter, filter);
      return overOutputs(conv.columns, iw, filters, [&](Value ow, Value kw, Value sum) {
        return emit.fma(loadY(oh, ow, f), loadW(kh, kw, c, f), sum);
      });
    });
  });
}

Value Direct::toKernel(Value kh, Value kw, Value c, Value f, Value sum) {
  Value channel = emit.add(emit.mul(group(f, conv.groupFilters()), conv.groupChannels()), c);
  return overInside(conv.rows, kh, sum, [&](Value oh, Value ih, Value rows) {
    return overInside(conv.columns, kw, rows, [&](Value ow, Value iw, Value running) {
      return emit.fma(loadX(ih, iw, channel), loadY(oh, ow, f), running);
    });
  });
}

static int64_t argumentOf(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument ? static_cast<int64_t>(argument.getArgNumber()) : -1;
}

LogicalResult mtc::emitDirectConv(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  Operation *op = mt::productOf(kernel.body());
  bool forward = isa<mt::Conv2DOp>(op);
  Direct direct{kernel, cast<mt::ConvolutionOpInterface>(op).getConvolution(), {}, {}, {}};
  ArrayRef<int64_t> shape = innerShape(op->getResult(0));
  int64_t count = innerCount(op->getResult(0)), tiles = (count + convThreads - 1) / convThreads;
  Value sample = emit.div(kernel.tile, emit.integer(tiles));
  Value index = emit.add(emit.mul(emit.rem(kernel.tile, emit.integer(tiles)), convThreads), kernel.thread);
  Value source = kernel.argument(argumentOf(op->getOperand(0)));
  Type element = elementOf(op->getOperand(0));
  source = emit.address(source, element, emit.mul(sample, innerCount(op->getOperand(0))));
  direct.w = kernel.argument(argumentOf(op->getOperand(1)));
  direct.typeW = elementOf(op->getOperand(1));
  (forward ? direct.x : direct.y) = source;
  (forward ? direct.typeX : direct.typeY) = element;
  emit.when(emit.less(index, emit.integer(count)), [&] {
    Emitter::Values at = coordinates(emit, index, shape);
    Value sum = forward ? direct.forward(at[0], at[1], at[2]) : direct.toImages(at[0], at[1], at[2]);
    at.insert(at.begin(), sample);
    Value first = emit.add(emit.mul(sample, count), index);
    storeAdjacent(emit, epilogueStores(kernel, op->getResult(0), sum, at, first), /*vectorWidth=*/1);
  });
  return success();
}

LogicalResult mtc::emitDirectConvWgrad(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  Type f32 = emit.getF32Type();
  auto op = kernel.yields()[0].getDefiningOp<mt::Conv2DKernelGradientOp>();
  int64_t count = innerCount(op.getResult());
  Value index = emit.add(emit.mul(kernel.tile, convThreads), kernel.thread);
  emit.when(emit.less(index, emit.integer(count)), [&] {
    Emitter::Values at = coordinates(emit, index, innerShape(op.getResult()));
    auto shard = [&](Value from, Value to) {
      return emit.loop(from, to, 1, emit.zeros(f32), [&](Value sample, ValueRange sum) {
        auto of = [&](Value value) {
          return emit.address(kernel.argument(argumentOf(value)), elementOf(value),
                              emit.mul(sample, innerCount(value)));
        };
        Direct direct{kernel, op.getConvolution(), of(op.getInput()), {}, of(op.getGradient())};
        direct.typeX = elementOf(op.getInput());
        direct.typeY = elementOf(op.getGradient());
        return Emitter::Values{direct.toKernel(at[0], at[1], at[2], at[3], sum[0])};
      });
    };
    emitBlockTree(kernel, 1, shard,
                  [&](ValueRange root) { emit.store(root[0], emit.address(kernel.result(0), f32, index)); });
  });
  return success();
}

// The kernel gradient of one sample.
Value BlockElements::kernelGradient(mt::Conv2DKernelGradientOp op, ValueRange at) {
  Direct direct{kernel, op.getConvolution(), {}, {}, {}};
  direct.elementX = [&](Value index) { return this->at(op.getInput(), index); };
  direct.elementY = [&](Value index) { return this->at(op.getGradient(), index); };
  return direct.toKernel(at[0], at[1], at[2], at[3], emit.zeros(emit.getF32Type()));
}
