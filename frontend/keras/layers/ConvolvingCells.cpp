// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers whose cells convolve images: their steps are unrolled.
#include "frontend/keras/Window.h"

using namespace mlir;
using mlir::mt::Expr;

namespace mtc::keras {
namespace {

constexpr int64_t maxSteps = 64;

// The part of an input [?, T, ...] at one step, as images [?, H, W, C].
template <int64_t axes> Value imagesAt(LayerBuilder &layer, Value x, int64_t step) {
  SmallVector<int64_t> sizes(layer.shapeOf(x).drop_front()), starts(sizes.size(), 0);
  starts[0] = step;
  sizes[0] = 1;
  Value part = layer.inferred<mt::SliceOp>({x}, {layer.integers("starts", starts), layer.integers("sizes", sizes)});
  SmallVector<int64_t> shape(sizes);
  shape[0] = batch;
  if (axes == 1)
    shape.insert(shape.begin() + 1, 1);
  return layer.reshape(part, shape);
}

// A quarter of the channels, which is a gate.
Expr gate(LayerBuilder &layer, Value images, int64_t index) {
  SmallVector<int64_t> sizes(layer.shapeOf(images).drop_front()), starts(sizes.size(), 0);
  sizes.back() /= 4;
  starts.back() = index * sizes.back();
  return layer.expr(
      layer.inferred<mt::SliceOp>({images}, {layer.integers("starts", starts), layer.integers("sizes", sizes)}));
}

struct Cell {
  Value kernel, recurrent, bias;
  Geometry outer, inner;
};

template <int64_t axes> std::optional<Cell> readCell(LayerBuilder &layer, Value x) {
  Cell cell;
  int64_t filters = layer.size("filters"), channels = layer.shapeOf(x).back();
  cell.outer = readGeometry<axes>(layer, "kernel_size", x);
  cell.inner.taps = cell.outer.taps;
  cell.inner.same = true;
  layer.config.expectAbsent({"kernel_constraint", "recurrent_constraint", "bias_constraint"});
  layer.config.expect("dropout", 0);
  layer.config.expect("recurrent_dropout", 0);
  layer.config.ignore({"seed"});
  if (layer.config.boolean("unit_forget_bias", true) && !layer.hasWeights)
    layer.fail("expected the model's weights, because unit_forget_bias needs them, found none: save the model with its "
               "weights, as model.keras");
  if (layer.config.failed())
    return std::nullopt;
  layer.part("conv_lstm_cell", "cell");
  auto variable = [&](llvm::StringRef name, int64_t from, llvm::StringRef initializer) {
    SmallVector<int64_t> shape(cell.outer.taps.end() - axes, cell.outer.taps.end());
    shape.append({from, 4 * filters});
    Value made = layer.variable(name, shape, initializer);
    return made ? layer.reshape(made, {cell.outer.taps[0], cell.outer.taps[1], from, 4 * filters}) : made;
  };
  cell.kernel = variable("kernel", channels, "kernel_initializer");
  cell.recurrent = variable("recurrent_kernel", filters, "recurrent_initializer");
  if (layer.config.boolean("use_bias", true))
    cell.bias = layer.variable("bias", {4 * filters}, "bias_initializer");
  else
    layer.config.ignore({"bias_initializer", "bias_regularizer"});
  return cell.kernel && cell.recurrent && !layer.config.failed() ? std::optional(cell) : std::nullopt;
}

// The states before the first step are zeros.
template <int64_t axes> Value buildConvLstm(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input(axes + 3));
  layer.expectChannelsLast();
  layer.config.expect("stateful", false);
  layer.config.ignore({"unroll", "zero_output_for_mask"});
  bool sequences = layer.config.boolean("return_sequences", false),
       states = layer.config.boolean("return_state", false);
  bool backward = layer.config.boolean("go_backwards", false);
  if (!x)
    return {};
  if (layer.inputMask())
    return layer.fail("expected steps without a mask, found a mask");
  int64_t steps = layer.shapeOf(x)[1];
  if (steps > maxSteps)
    return layer.fail("expected at most " + std::to_string(maxSteps) + " steps, found " + std::to_string(steps));
  std::optional<Cell> cell = readCell<axes>(layer, x);
  Value output, carry;
  SmallVector<Value> outputs;
  for (int64_t step = 0; cell && step < steps; ++step) {
    Value z =
        convolve(layer, imagesAt<axes>(layer, x, backward ? steps - 1 - step : step), cell->kernel, cell->outer, 1);
    if (z && cell->bias)
      z = layer.binary<mt::AddOp>(z, cell->bias);
    Value before = z && output ? convolve(layer, output, cell->recurrent, cell->inner, 1) : Value();
    if (!z || (output && !before))
      return {};
    z = before ? layer.binary<mt::AddOp>(z, before) : z;
    auto of = [&](int64_t index, llvm::StringRef key) { return activate(layer, gate(layer, z, index).value(), key); };
    Value in = of(0, "recurrent_activation"), forget = of(1, "recurrent_activation"), next = of(2, "activation");
    Value out = of(3, "recurrent_activation");
    if (!in || !forget || !next || !out)
      return {};
    Expr added = layer.expr(in) * layer.expr(next);
    carry = (carry ? layer.expr(forget) * layer.expr(carry) + added : added).value();
    output = (layer.expr(out) * layer.expr(activate(layer, carry))).value();
    outputs.push_back(fromImages<axes>(layer, output));
  }
  if (outputs.empty())
    return {};
  if (states)
    layer.others = {outputs.back(), fromImages<axes>(layer, carry)};
  if (!sequences)
    return outputs.back();
  for (Value &each : outputs) {
    SmallVector<int64_t> shape(layer.shapeOf(each));
    shape.insert(shape.begin() + 1, 1);
    each = layer.reshape(each, shape);
  }
  return outputs.size() == 1 ? outputs[0]
                             : layer.inferred<mt::ConcatOp>(
                                   outputs, {layer.builder.getNamedAttr("dim", layer.builder.getI64IntegerAttr(1))});
}

} // namespace

llvm::ArrayRef<LayerEntry> convolvingCellLayers() {
  static constexpr LayerEntry entries[] = {{"ConvLSTM1D", buildConvLstm<1>}, {"ConvLSTM2D", buildConvLstm<2>}};
  return entries;
}

} // namespace mtc::keras
