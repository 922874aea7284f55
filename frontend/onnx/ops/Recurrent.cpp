// SPDX-License-Identifier: Apache-2.0
//
// RNN, GRU and LSTM, as loops over the steps. X [T, N, I], W [D, gates H, I], R [D, gates H, H], B [D, 2 gates H],
// initial states [D, N, H]; D is 2 of bidirectional layers. Y [T, D, N, H], then the last states [D, N, H].
#include "frontend/onnx/OpTable.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mtc::onnx {
namespace {

using logical::Ops;
using logical::Value;
using Values = SmallVector<Value>;

// A step: `x` is the input's share of the gates, `r` the recurrent weights [gates H, H], `bias` the recurrent bias
// [gates H] or null. States before to states after; the first one is the output.
using Step = Values (*)(Call &, const Value &x, const Value &r, const Value &bias, ArrayRef<Value> states);

struct Cell {
  int64_t gates;
  size_t states;
  Step step;
  std::vector<std::string> activations;
};

Value rows(Call &call, const Value &value, int64_t index, int64_t units) {
  return value ? logical::sliceAxis(call.ops, value, 0, index * units, units) : Value{};
}
Value gate(Call &call, const Value &gates, int64_t index, int64_t units) {
  return logical::sliceAxis(call.ops, gates, 1, index * units, units);
}
Value recurrent(Call &call, const Value &state, const Value &r, const Value &bias) {
  Value product = logical::product(call.ops, state, r, {{1, 1}});
  return bias ? logical::binary<mt::AddOp>(call.ops, product, bias) : product;
}
Value sigmoid(Call &call, const Value &value) { return logical::unary<mt::SigmoidOp>(call.ops, value); }
Value tanh(Call &call, const Value &value) { return logical::unary<mt::TanhOp>(call.ops, value); }
Value times(Call &call, const Value &a, const Value &b) { return logical::binary<mt::MulOp>(call.ops, a, b); }
Value plus(Call &call, const Value &a, const Value &b) { return logical::binary<mt::AddOp>(call.ops, a, b); }

template <typename Activation>
Values rnnStep(Call &call, const Value &x, const Value &r, const Value &bias, ArrayRef<Value> states) {
  return {logical::unary<Activation>(call.ops, plus(call, x, recurrent(call, states[0], r, bias)))};
}

// Gates: input, output, forget, cell.
Values lstmStep(Call &call, const Value &x, const Value &r, const Value &bias, ArrayRef<Value> states) {
  int64_t units = x.size(1).times / 4;
  Value gates = plus(call, x, recurrent(call, states[0], r, bias));
  Value retained = times(call, sigmoid(call, gate(call, gates, 2, units)), states[1]);
  Value added = times(call, sigmoid(call, gate(call, gates, 0, units)), tanh(call, gate(call, gates, 3, units)));
  Value cell = plus(call, retained, added);
  return {times(call, sigmoid(call, gate(call, gates, 1, units)), tanh(call, cell)), cell};
}

// Gates: update, reset, hidden.
Values gruStep(Call &call, const Value &x, const Value &r, const Value &bias, ArrayRef<Value> states) {
  int64_t units = x.size(1).times / 3;
  bool resetsProduct = call.integer("linear_before_reset", 0) != 0;
  const Value &state = states[0];
  auto part = [&](int64_t index, const Value &of) {
    return recurrent(call, of, rows(call, r, index, units), rows(call, bias, index, units));
  };
  Value update = sigmoid(call, plus(call, gate(call, x, 0, units), part(0, state)));
  Value reset = sigmoid(call, plus(call, gate(call, x, 1, units), part(1, state)));
  Value share = resetsProduct ? times(call, reset, part(2, state)) : part(2, times(call, reset, state));
  Value hidden = tanh(call, plus(call, gate(call, x, 2, units), share));
  // hidden + update (state - hidden)
  return {plus(call, hidden, times(call, update, logical::binary<mt::SubOp>(call.ops, state, hidden)))};
}

class Loop {
public:
  Loop(Call &call, const Cell &cell) : call(call), ops(call.ops), cell(cell) {}

  void build() {
    readOptions();
    SmallVector<Value> outputs, last[2];
    for (int64_t direction = 0; direction < directions; ++direction) {
      Values results = run(direction);
      outputs.push_back(logical::expandDims(results[0], {1}));
      for (size_t i = 0; i < cell.states; ++i)
        last[i].push_back(logical::expandDims(results[i + 1], {0}));
    }
    Value sequence = logical::concat(ops, outputs, 1);
    call.give(batchFirst ? logical::transpose(sequence, {2, 0, 1, 3}) : sequence);
    for (size_t i = 0; i < cell.states; ++i) {
      Value states = logical::concat(ops, last[i], 0);
      call.give(batchFirst ? logical::transpose(states, {1, 0, 2}) : states);
    }
  }

private:
  void readOptions() {
    batchFirst = call.integer("layout", 0) != 0;
    std::string direction = call.text("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      throw Refused("expected a direction of forward, reverse or bidirectional, found " + direction);
    directions = direction == "bidirectional" ? 2 : 1;
    backward = direction == "reverse";
    units = call.integer("hidden_size", 0);
    if (call.has(4))
      throw Refused("sequences of different lengths (sequence_lens)");
    if (call.has(7))
      throw Refused("weights from the cell to the gates (P)");
    if (call.hasAttribute("clip") || call.integer("input_forget", 0))
      throw Refused("clip or input_forget");
    std::vector<std::string> wanted, activations = call.texts("activations");
    for (int64_t i = 0; i < directions; ++i)
      wanted.insert(wanted.end(), cell.activations.begin(), cell.activations.end());
    if (!activations.empty() && activations != wanted)
      throw Refused("other activations than " + llvm::join(cell.activations, ", "));
    call.ignore("activation_alpha");
    call.ignore("activation_beta");
    x = call.value(0);
    if (x.rank() != 3)
      throw Refused("expected sequences of 3 axes, found " + logical::describe(x.shape()));
    if (batchFirst)
      x = logical::transpose(x, {1, 0, 2});
    if (!x.size(1).isBatch() || x.size(0).batch)
      throw Refused("expected the batch as the second axis, or the first with layout 1, found " +
                    logical::describe(x.shape()));
    Value weights = call.value(1);
    logical::Shape wantedShape = {directions, logical::multiply(cell.gates, units), x.size(2)};
    if (units < 1 || weights.shape() != wantedShape)
      throw Refused("expected weights " + logical::describe(wantedShape) + ", found " +
                    logical::describe(weights.shape()));
  }

  // An operand of one direction, without that axis.
  Value ofDirection(size_t index, int64_t direction, logical::Shape shape) {
    Value value = call.value(index);
    if (batchFirst && index >= 5)
      value = logical::transpose(value, {1, 0, 2});
    logical::Shape full = shape;
    full.insert(full.begin(), Size(directions));
    value = logical::broadcast(value, full);
    return logical::squeeze(logical::sliceAxis(ops, value, 0, direction, 1), {0});
  }

  // The outputs [T, N, H] and the last states [N, H].
  Values run(int64_t direction) {
    int64_t width = cell.gates * units;
    Value w = ofDirection(1, direction, {width, x.size(2)}), bias;
    Value r = ops.value(logical::whole(ops, ofDirection(2, direction, {width, units})));
    Value projected = logical::product(ops, x, w, {{2, 1}});
    if (call.has(3)) {
      Value both = ofDirection(3, direction, {2 * width});
      projected = plus(call, projected, logical::sliceAxis(ops, both, 0, 0, width));
      bias = ops.value(logical::whole(ops, logical::sliceAxis(ops, both, 0, width, width)));
    }
    mlir::Value input = logical::whole(ops, logical::transpose(projected, {1, 0, 2}));
    SmallVector<mlir::Value> before;
    for (size_t i = 0; i < cell.states; ++i) {
      Value state = call.has(5 + i) ? ofDirection(5 + i, direction, {logical::batchSize(), units})
                                    : ops.number(0, ops.real(), {logical::batchSize(), units});
      before.push_back(logical::whole(ops, state));
    }
    return scanned(input, before, r, bias, backward || direction == 1);
  }

  Values scanned(mlir::Value input, ArrayRef<mlir::Value> before, const Value &r, const Value &bias, bool reverse) {
    int64_t steps = x.size(0).times;
    auto row = RankedTensorType::get({ShapedType::kDynamic, units}, ops.real());
    SmallVector<Type> types(before.size(), row);
    types.push_back(mt::ScanOp::stackOf(row, steps));
    auto scan = mt::ScanOp::create(ops.builder, ops.location, TypeRange(types), input, before, IntegerAttr(),
                                   reverse ? ops.builder.getUnitAttr() : UnitAttr());
    Block &body = scan.getBody().emplaceBlock();
    mlir::Value part = body.addArgument(mt::ScanOp::partOf(cast<RankedTensorType>(input.getType())), ops.location);
    for (mlir::Value state : before)
      body.addArgument(state.getType(), ops.location);
    {
      OpBuilder::InsertionGuard guard(ops.builder);
      ops.builder.setInsertionPointToEnd(&body);
      Values states;
      for (mlir::Value state : body.getArguments().drop_front())
        states.push_back(ops.value(state));
      SmallVector<mlir::Value> yielded;
      for (const Value &state : cell.step(call, ops.value(part), r, bias, states))
        yielded.push_back(logical::whole(ops, state));
      yielded.push_back(yielded[0]);
      mt::YieldOp::create(ops.builder, ops.location, yielded);
    }
    Values results = {logical::transpose(ops.value(scan.getResults().back()), {1, 0, 2})};
    for (size_t i = 0; i < before.size(); ++i)
      results.push_back(ops.value(scan.getResult(i)));
    return results;
  }

  Call &call;
  Ops &ops;
  const Cell &cell;
  bool batchFirst = false, backward = false;
  int64_t directions = 1, units = 0;
  Value x; // [T, N, I]
};

void buildRnn(Call &call) {
  std::vector<std::string> names = call.texts("activations");
  if (!names.empty() && names[0] == "Relu")
    return Loop(call, {1, 1, rnnStep<mt::ReluOp>, {"Relu"}}).build();
  Loop(call, {1, 1, rnnStep<mt::TanhOp>, {"Tanh"}}).build();
}
void buildGru(Call &call) { Loop(call, {3, 1, gruStep, {"Sigmoid", "Tanh"}}).build(); }
void buildLstm(Call &call) { Loop(call, {4, 2, lstmStep, {"Sigmoid", "Tanh", "Tanh"}}).build(); }

} // namespace

llvm::ArrayRef<OpEntry> recurrentOps() {
  static constexpr OpEntry entries[] = {{"RNN", buildRnn}, {"GRU", buildGru}, {"LSTM", buildLstm}};
  return entries;
}

} // namespace mtc::onnx
