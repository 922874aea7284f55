// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers: the cells, the order of the steps, and the results.
#include "frontend/keras/LayerTable.h"
#include "frontend/keras/layers/RecurrentCell.h"

using namespace mlir;
using mlir::mt::Expr;

namespace mtc::keras {
namespace {

StepOrder readOrder(LayerBuilder &layer) {
  layer.config.expect("stateful", false);
  layer.config.expect("time_major", false);
  layer.config.ignore({"unroll", "use_cudnn", "cudnn"});
  return {layer.config.boolean("return_sequences", false), layer.config.boolean("return_state", false),
          layer.config.boolean("go_backwards", false), layer.config.boolean("zero_output_for_mask", false)};
}

// Tensors of the argument `initial_state`, by keyword or as the second argument: one, a list, or none.
SmallVector<Value> initialStates(LayerBuilder &layer) {
  const Operand *initial = layer.keyword("initial_state");
  SmallVector<Value> states;
  if (!initial)
    return states;
  if (initial->tensor)
    states.push_back(initial->tensor);
  for (const Operand &state : initial->list)
    if (state.tensor)
      states.push_back(state.tensor);
  if (states.empty())
    layer.fail("expected tensors as initial_state, found something else");
  return states;
}

// The mask of the steps. If a layer is called with states as tensors, only the argument `mask` counts, because Keras
// then looks for arguments of other names.
Value stepMask(LayerBuilder &layer, ArrayRef<Value> states) {
  Value mask = layer.inputMask();
  return states.empty() || layer.isMaskGiven() ? mask : Value();
}

// Runs the cells of one layer, each of which reads the output of the previous one.
StepResult runCells(LayerBuilder &layer, const Json &object, const std::string &name, const std::string &weights,
                    StepOrder order, Value mask, Value x, ArrayRef<Value> states) {
  std::string className = textMember(object, "class_name");
  const Json *config = member(object, "config");
  SmallVector<const Json *> cells;
  bool stacked = className == "StackedRNNCells";
  if (const Json *list = stacked && config ? member(*config, "cells") : nullptr; list && list->is_array())
    for (const Json &cell : *list)
      cells.push_back(&cell);
  else
    cells.push_back(&object);
  StepResult result;
  std::map<std::string, int> folderCounts;
  for (const Json *each : cells) {
    const CellClass *cell = findCell(textMember(*each, "class_name"));
    const Json *own = member(*each, "config");
    if (!cell || !own) {
      layer.fail("expected a cell of class SimpleRNNCell, LSTMCell or GRUCell, found " + describe(*each));
      return {};
    }
    std::string folder = cell->cellName;
    if (int number = folderCounts[folder]++)
      folder += "_" + std::to_string(number);
    layer.part(stacked ? name + textMember(*own, "name") : name.substr(0, name.size() - 1),
               stacked ? weights + "/cells/" + folder : weights);
    if (states.size() < static_cast<size_t>(cell->states) && !states.empty()) {
      layer.fail("expected initial states of all cells, found too few");
      return {};
    }
    bool last = each == cells.back();
    StepOrder inner = {order.sequences || !last, order.state, order.backward, order.zeroMasked && last};
    SmallVector<Value> before(states.take_front(states.empty() ? 0 : cell->states));
    states = states.drop_front(before.size());
    InnerConfig scope(layer, *own);
    StepResult next = runCell(layer, *cell, inner, mask, x, before);
    if (!next.last)
      return {};
    llvm::append_range(result.states, next.states);
    x = result.outputs = next.outputs;
    result.last = next.last;
  }
  return result;
}

// Runs a layer whose own config has the options of its cell.
StepResult runLayer(LayerBuilder &layer, const CellClass &cell, const std::string &name, const std::string &weights,
                    StepOrder order, Value mask, Value x, ArrayRef<Value> states) {
  layer.part(name + cell.cellName, weights + "cell");
  return runCell(layer, cell, order, mask, x, SmallVector<Value>(states));
}

// The results of the layer.
Value returned(LayerBuilder &layer, const StepResult &result, StepOrder order) {
  if (!result.last)
    return {};
  if (order.state)
    llvm::append_range(layer.others, result.states);
  if (!order.sequences)
    return result.last;
  layer.outputMask = layer.inputMask();
  if (!order.backward)
    return result.outputs;
  return mt::ReverseOp::create(layer.builder, layer.location, result.outputs, ArrayRef<int64_t>{1});
}

template <int index> Value buildRecurrent(LayerBuilder &layer) {
  SmallVector<Value> states = initialStates(layer);
  Value x = layer.toFloat(layer.input(3));
  StepOrder order = readOrder(layer);
  if (!x || layer.config.failed())
    return {};
  return returned(layer, runLayer(layer, cellClasses[index], "", "", order, stepMask(layer, states), x, states), order);
}

Value buildRnn(LayerBuilder &layer) {
  SmallVector<Value> states = initialStates(layer);
  Value x = layer.toFloat(layer.input(3));
  StepOrder order = readOrder(layer);
  const Json *cell = layer.config.find("cell");
  const Json *config = cell ? member(*cell, "config") : nullptr;
  if (!config)
    return layer.fail("expected a cell, found none");
  if (!x || layer.config.failed())
    return {};
  return returned(
      layer,
      runCells(layer, *cell, textMember(*config, "name") + "/", "cell", order, stepMask(layer, states), x, states),
      order);
}

// Runs one direction of a Bidirectional layer.
StepResult runDirection(LayerBuilder &layer, const Json &object, const std::string &folder, Value x,
                        ArrayRef<Value> states, StepOrder &order) {
  const Json *own = member(object, "config");
  const CellClass *cell = findCell(textMember(object, "class_name"));
  bool general = textMember(object, "class_name") == "RNN";
  if (!own || (!cell && !general)) {
    layer.fail("expected a layer of class LSTM, GRU, SimpleRNN or RNN, found " + describe(object));
    return {};
  }
  InnerConfig scope(layer, *own);
  layer.config.expectAbsent({"activity_regularizer"});
  order = readOrder(layer);
  std::string name = textMember(*own, "name") + "/";
  if (!general)
    return runLayer(layer, *cell, name, folder + "/", order, stepMask(layer, states), x, states);
  const Json *held = layer.config.find("cell");
  const Json *config = held ? member(*held, "config") : nullptr;
  if (!config) {
    layer.fail("expected a cell, found none");
    return {};
  }
  return runCells(layer, *held, name + textMember(*config, "name") + "/", folder + "/cell", order,
                  stepMask(layer, states), x, states);
}

Value mergedBy(LayerBuilder &layer, const std::string &mode, Value a, Value b) {
  Expr x = layer.expr(a), y = layer.expr(b);
  if (mode == "concat")
    return mt::ConcatOp::create(layer.builder, layer.location, ValueRange{a, b}, layer.typeOf(a).getRank() - 1);
  if (mode == "sum")
    return (x + y).value();
  if (mode == "ave")
    return ((x + y) / 2.0).value();
  if (mode == "mul")
    return (x * y).value();
  return layer.fail("expected merge_mode to be concat, sum, ave or mul, found " + mode);
}

Value buildBidirectional(LayerBuilder &layer) {
  SmallVector<Value> states = initialStates(layer);
  Value x = layer.toFloat(layer.input(3));
  const Json *forward = layer.config.find("layer"), *backward = layer.config.find("backward_layer");
  const Json *mode = layer.config.find("merge_mode");
  if (!forward || !backward)
    return layer.fail("expected a layer and a backward_layer, found " + std::string(forward ? "one" : "none"));
  if (!x || layer.config.failed())
    return {};
  ArrayRef<Value> before(states);
  StepOrder order, back;
  StepResult one = runDirection(layer, *forward, "forward_layer", x, before.take_front(before.size() / 2), order);
  if (!one.last)
    return {};
  StepResult other = runDirection(layer, *backward, "backward_layer", x, before.drop_front(before.size() / 2), back);
  if (!other.last)
    return {};
  if (order.backward == back.backward || order.sequences != back.sequences || order.state != back.state)
    return layer.fail("expected layers of two directions that return the same, found others");
  // The outputs of the backward direction are reversed twice: by its layer, and by this layer, whichever of the two
  // directions it is.
  Value a = order.sequences ? one.outputs : one.last, b = order.sequences ? other.outputs : other.last;
  if (order.sequences && order.backward)
    for (Value *turned : {&a, &b})
      *turned = mt::ReverseOp::create(layer.builder, layer.location, *turned, ArrayRef<int64_t>{1});
  if (order.sequences)
    layer.outputMask = layer.inputMask();
  Value result = mode ? mergedBy(layer, mode->is_string() ? mode->get<std::string>() : describe(*mode), a, b) : a;
  if (!mode)
    layer.others.push_back(b);
  if (order.state)
    for (ArrayRef<Value> after : {ArrayRef<Value>(one.states), ArrayRef<Value>(other.states)})
      llvm::append_range(layer.others, after);
  return result;
}

// Steps whose elements all equal mask_value become zeros, and are masked.
Value buildMasking(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  double hidden = layer.config.real("mask_value", 0);
  layer.inputMask(); // the mask of the previous layer is not passed on
  if (!x || layer.typeOf(x).getRank() < 3)
    return x ? layer.fail("expected an input of 3 axes with the batch, found " +
                          std::to_string(layer.typeOf(x).getRank()))
             : x;
  Expr visible = maxLast(toFloat(!(layer.expr(x) == hidden))) > 0.0;
  layer.outputMask = layer.reshape(visible.value(), layer.shapeOf(x).drop_back());
  return (layer.expr(x) * toFloat(visible)).value();
}

} // namespace

llvm::ArrayRef<LayerEntry> recurrentLayers() {
  static constexpr LayerEntry entries[] = {{"Masking", buildMasking},   {"SimpleRNN", buildRecurrent<0>},
                                           {"LSTM", buildRecurrent<1>}, {"GRU", buildRecurrent<2>},
                                           {"RNN", buildRnn},           {"Bidirectional", buildBidirectional}};
  return entries;
}

} // namespace mtc::keras
