// SPDX-License-Identifier: Apache-2.0
//
// The product of all inputs with the kernel is one product before the loop. The loop is an mt.scan over the rest of the
// cell: the product of the state with the recurrent kernel, and the gates.
#include "frontend/keras/layers/RecurrentCell.h"
#include "frontend/keras/LayerTable.h"

using namespace mlir;
using mlir::mt::Expr;

namespace mtc::keras {

const CellClass *findCell(llvm::StringRef name) {
  for (const CellClass &known : cellClasses)
    if (name == known.layer || name == known.cell)
      return &known;
  return nullptr;
}

namespace {

// One cell over all steps of its input. The config of the layer is that of the cell.
class Loop {
public:
  Loop(LayerBuilder &layer, const CellClass &cell, StepOrder order, Value mask)
      : layer(layer), cell(cell), order(order), mask(mask) {}

  // x [?, T, C]; `states` are the states before the first step, empty for zeros. Returns no outputs after an error.
  StepResult run(Value x, SmallVector<Value> states);

private:
  LayerBuilder &layer;
  const CellClass &cell;
  const StepOrder order;
  const Value mask; // [?, T]; null: no mask
  int64_t units = 0;
  bool resetAfter = true;
  double dropout = 0, recurrentDropout = 0;
  Value recurrent, recurrentBias;  // bias of the product with the state, which GRU with reset_after has
  SmallVector<Value> dropoutMasks; // factors of the state for recurrent_dropout, per gate

  bool readOptions();
  Value project(Value x);
  Value productOf(Value state, int64_t firstGate, int64_t gates);
  SmallVector<Value> step(Value x, ArrayRef<Value> states);
  Value scanned(Value x, ArrayRef<Value> before, SmallVectorImpl<Value> &results);

  Expr expr(Value value) { return layer.expr(value); }
  RankedTensorType rowType(int64_t size) { return RankedTensorType::get({batch, size}, layer.builder.getF32Type()); }
  Expr filled(RankedTensorType type, double value) {
    Value one = mt::ConstantOp::create(layer.builder, layer.location, static_cast<float>(value));
    return expr(mt::BroadcastOp::create(layer.builder, layer.location, type, one));
  }
  // Slice of gates of a value [?, gates * units], or of a matrix or vector with this last axis.
  Value gate(Value value, int64_t first, int64_t count = 1) {
    ArrayRef<int64_t> shape = layer.shapeOf(value).drop_front(mt::isSplit(value.getType()));
    SmallVector<int64_t> starts(shape.size(), 0), sizes(shape);
    starts.back() = first * units;
    sizes.back() = count * units;
    if (sizes.back() == shape.back())
      return value;
    return mt::SliceOp::create(layer.builder, layer.location, value, starts, sizes);
  }
  Value activated(Value value, llvm::StringRef key) { return activate(layer, value, key); }
  Value dropped(Value value, double rate, ArrayRef<int64_t> shared) {
    NamedAttribute attributes[] = {layer.builder.getNamedAttr("stream", layer.builder.getStringAttr(layer.stream())),
                                   layer.number("rate", rate), layer.integers("shared", shared)};
    return layer.made<mt::DropoutOp>({value}, attributes, value.getType());
  }
};

bool Loop::readOptions() {
  units = layer.size("units");
  layer.config.ignore({"seed", "implementation", "unroll"});
  layer.config.expectAbsent({"kernel_constraint", "recurrent_constraint", "bias_constraint"});
  dropout = layer.config.real("dropout", 0);
  recurrentDropout = layer.config.real("recurrent_dropout", 0);
  for (double rate : {dropout, recurrentDropout})
    if (!(rate >= 0 && rate < 1))
      layer.fail("expected a rate from 0 to less than 1, found " + std::to_string(rate));
  if (cell.kind == CellKind::Gru)
    resetAfter = layer.config.boolean("reset_after", true);
  if (cell.kind == CellKind::Lstm && layer.config.boolean("unit_forget_bias", true) && !layer.hasWeights)
    layer.fail("expected the model's weights, because unit_forget_bias needs them, found none: save the model with "
               "its weights, as model.keras");
  return !layer.config.failed();
}

// The product of the inputs of all steps with the kernels of all gates, with the bias.
Value Loop::project(Value x) {
  int64_t all = cell.gates * units;
  Value kernel = layer.variable("kernel", {layer.shapeOf(x).back(), all}, "kernel_initializer");
  recurrent = layer.variable("recurrent_kernel", {units, all}, "recurrent_initializer");
  Value bias;
  bool two = cell.kind == CellKind::Gru && resetAfter;
  if (layer.config.boolean("use_bias", true))
    bias = layer.variable("bias", two ? ArrayRef<int64_t>{2, all} : ArrayRef<int64_t>{all}, "bias_initializer");
  else
    layer.config.ignore({"bias_initializer", "bias_regularizer"});
  if (!kernel || !recurrent || layer.config.failed())
    return {};
  if (two && bias) {
    auto part = [&](int64_t row) {
      return layer.reshape(mt::SliceOp::create(layer.builder, layer.location, bias, ArrayRef<int64_t>{row, 0},
                                               ArrayRef<int64_t>{1, all}),
                           {all});
    };
    recurrentBias = part(1);
    bias = part(0);
  }
  auto product = [&](Value a, Value b) {
    return mt::MatmulOp::create(layer.builder, layer.location, a, b, false, false).getResult();
  };
  Value projected;
  if (dropout > 0 && recurrentDropout > 0 && cell.gates > 1) {
    // Keras then has separate dropout for each gate.
    SmallVector<Value> parts;
    for (int64_t i = 0; i < cell.gates; ++i)
      parts.push_back(product(dropped(x, dropout, {1}), gate(kernel, i)));
    projected = mt::ConcatOp::create(layer.builder, layer.location, parts, 2);
  } else {
    projected = product(dropout > 0 ? dropped(x, dropout, {1}) : x, kernel);
  }
  // The same elements are dropped at all steps.
  for (int64_t i = 0; recurrentDropout > 0 && i < cell.gates; ++i)
    dropoutMasks.push_back(dropped(filled(rowType(units), 1).value(), recurrentDropout, {}));
  return bias ? layer.binary<mt::AddOp>(projected, bias) : projected;
}

Value Loop::productOf(Value state, int64_t firstGate, int64_t gates) {
  auto product = [&](Value a, int64_t first, int64_t count) {
    return mt::MatmulOp::create(layer.builder, layer.location, a, gate(recurrent, first, count), false, false)
        .getResult();
  };
  if (dropoutMasks.empty())
    return product(state, firstGate, gates);
  SmallVector<Value> parts;
  for (int64_t i = firstGate; i < firstGate + gates; ++i)
    parts.push_back(product((expr(state) * expr(dropoutMasks[i])).value(), i, 1));
  return gates == 1 ? parts[0] : mt::ConcatOp::create(layer.builder, layer.location, parts, 1).getResult();
}

// The states after a step; the first state is the output. Empty after an error.
SmallVector<Value> Loop::step(Value x, ArrayRef<Value> states) {
  constexpr llvm::StringRef outer = "activation", inner = "recurrent_activation";
  Value before = states[0];
  if (cell.kind == CellKind::Simple) {
    Value after = activated((expr(productOf(before, 0, 1)) + expr(x)).value(), outer);
    return after ? SmallVector<Value>{after} : SmallVector<Value>();
  }
  if (cell.kind == CellKind::Lstm) {
    Value z = (expr(productOf(before, 0, 4)) + expr(x)).value();
    Value in = activated(gate(z, 0), inner), forget = activated(gate(z, 1), inner);
    Value next = activated(gate(z, 2), outer), out = activated(gate(z, 3), inner);
    if (!in || !forget || !next || !out)
      return {};
    Value carry = (expr(forget) * expr(states[1]) + expr(in) * expr(next)).value();
    return {(expr(out) * expr(activated(carry, outer))).value(), carry};
  }
  Value gates = productOf(before, 0, resetAfter ? 3 : 2);
  if (recurrentBias)
    gates = layer.binary<mt::AddOp>(gates, recurrentBias);
  Value update = activated((expr(gate(x, 0)) + expr(gate(gates, 0))).value(), inner);
  Value reset = activated((expr(gate(x, 1)) + expr(gate(gates, 1))).value(), inner);
  if (!update || !reset)
    return {};
  Expr inside =
      resetAfter ? expr(reset) * expr(gate(gates, 2)) : expr(productOf((expr(reset) * expr(before)).value(), 2, 1));
  Value next = activated((expr(gate(x, 2)) + inside).value(), outer);
  if (!next)
    return {};
  return {(expr(update) * expr(before) + (1.0 - expr(update)) * expr(next)).value()};
}

// Builds the loop. The states do not change at steps for which the mask is false.
Value Loop::scanned(Value x, ArrayRef<Value> before, SmallVectorImpl<Value> &results) {
  OpBuilder &builder = layer.builder;
  SmallVector<Value> inputs{x};
  if (mask)
    inputs.push_back(layer.reshape(mask, {batch, layer.shapeOf(mask)[1], 1}));
  bool stacks = order.sequences || order.zeroMasked;
  SmallVector<Type> types(before.size(), rowType(units));
  if (stacks)
    types.push_back(mt::ScanOp::stackOf(rowType(units), layer.shapeOf(x)[1]));
  auto scan = mt::ScanOp::create(builder, layer.location, TypeRange(types), inputs, before, IntegerAttr(),
                                 order.backward ? builder.getUnitAttr() : UnitAttr());
  Block &body = scan.getBody().emplaceBlock();
  SmallVector<Value> arguments;
  for (Value input : inputs)
    arguments.push_back(body.addArgument(mt::ScanOp::partOf(layer.typeOf(input)), layer.location));
  SmallVector<Value> states;
  for (Value state : before)
    states.push_back(body.addArgument(state.getType(), layer.location));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&body);
  SmallVector<Value> yielded = step(arguments[0], states);
  if (yielded.empty())
    return {};
  Value output = yielded[0];
  if (mask) {
    Expr seen = expr(arguments[1]);
    if (stacks)
      output =
          (order.zeroMasked ? select(seen, expr(output), 0.0) : select(seen, expr(output), expr(states[0]))).value();
    for (auto [after, state] : llvm::zip_equal(yielded, states))
      after = select(seen, expr(after), expr(state)).value();
  }
  if (stacks)
    yielded.push_back(output);
  mt::YieldOp::create(builder, layer.location, yielded);
  llvm::append_range(results, scan.getResults());
  return results[0];
}

StepResult Loop::run(Value x, SmallVector<Value> states) {
  Value projected = readOptions() ? project(x) : Value();
  if (!projected)
    return {};
  if (states.empty())
    states.assign(cell.states, filled(rowType(units), 0).value());
  for (Value &state : states) {
    state = layer.toFloat(state);
    if (states.size() != static_cast<size_t>(cell.states) || state.getType() != rowType(units)) {
      layer.fail("expected " + std::to_string(cell.states) + " initial states of " + std::to_string(units) +
                 " numbers a sample, found " + std::to_string(states.size()) + ", or others");
      return {};
    }
  }
  SmallVector<Value> results;
  if (!scanned(projected, states, results))
    return {};
  StepResult result;
  result.states.assign(results.begin(), results.begin() + cell.states);
  result.last = results[0];
  if (results.size() == result.states.size())
    return result;
  result.outputs = results.back();
  if (mask && order.zeroMasked) {
    int64_t steps = layer.shapeOf(x)[1], at = order.backward ? 0 : steps - 1;
    result.last = layer.reshape(mt::SliceOp::create(layer.builder, layer.location, result.outputs,
                                                    ArrayRef<int64_t>{at, 0}, ArrayRef<int64_t>{1, units}),
                                {batch, units});
  }
  return result;
}

} // namespace

StepResult runCell(LayerBuilder &layer, const CellClass &cell, StepOrder order, Value mask, Value x,
                   SmallVector<Value> states) {
  return Loop(layer, cell, order, mask).run(x, std::move(states));
}

} // namespace mtc::keras
