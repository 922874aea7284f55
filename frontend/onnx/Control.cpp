// SPDX-License-Identifier: Apache-2.0
//
// If, Loop and Scan. Their conditions and numbers of steps must be known when the file is read, as those that exporters
// compute from shapes are. The nodes of a branch then stand in place of the If. Those of a loop are the body of an
// mt.scan; where mt.scan cannot have them, they stand in its place once for each step.
#include "frontend/onnx/Importer.h"
#include "frontend/onnx/OpTable.h"

#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace mtc::onnx {
namespace {

using logical::Shape;

// An error was reported at a node of a body.
struct Reported {};

const Graph &bodyOf(const Node &node, const char *name) {
  auto found = node.attributes.find(name);
  if (found == node.attributes.end() || !found->second.graph)
    throw Refused(std::string("expected a graph '") + name + "', found none");
  return *found->second.graph;
}

// One boolean that is known.
bool isTrue(const Operand &operand, const char *what) {
  if (!operand.known || operand.known->hasBatch() || operand.known->count() != 1)
    throw Refused(std::string(what) + " that the data or the number of samples decides");
  return operand.known->numbers[0] != 0;
}

SmallVector<int64_t> integersOf(const Node &node, const char *name, size_t count) {
  auto found = node.attributes.find(name);
  if (found == node.attributes.end())
    return SmallVector<int64_t>(count, 0);
  if (found->second.integers.size() != count)
    throw Refused(std::string("expected ") + std::to_string(count) + " numbers " + name + ", found " +
                  std::to_string(found->second.integers.size()));
  return SmallVector<int64_t>(found->second.integers.begin(), found->second.integers.end());
}

Shape shapeOf(const Operand &operand) {
  if (operand.known) {
    Shape shape;
    for (int64_t size : operand.known->shape)
      shape.push_back(size);
    return shape;
  }
  if (!operand.value)
    throw Refused("a list, or a value that depends on the place of a sample, in a loop");
  return operand.value.shape();
}

// The element at an index of an axis, which disappears.
Operand elementOf(logical::Ops &ops, const Operand &operand, size_t axis, int64_t index) {
  Operand made = operand;
  if (operand.known) {
    Indices shape(operand.known->shape);
    shape.erase(shape.begin() + static_cast<int64_t>(axis));
    made.known = std::make_shared<const Known>(operand.known->remapped(shape, [&](ArrayRef<int64_t> indices) {
      Indices from(indices.begin(), indices.end());
      from.insert(from.begin() + static_cast<int64_t>(axis), index);
      return operand.known->place(from);
    }));
    return made;
  }
  made.value = logical::squeeze(logical::sliceAxis(ops, operand.value, axis, index, 1), {static_cast<int64_t>(axis)});
  return made;
}

// Values of all steps, one behind the other along a new axis.
Operand stacked(logical::Ops &ops, ArrayRef<Operand> steps, int64_t axis) {
  if (steps.empty())
    throw Refused("a loop without steps whose results are put together");
  Operand made = steps[0];
  bool known = llvm::all_of(steps, [&](const Operand &step) {
    return step.known && !step.known->hasBatch() && step.known->shape == steps[0].known->shape &&
           step.known->type == steps[0].known->type;
  });
  auto rank = static_cast<int64_t>(shapeOf(steps[0]).size());
  axis = axis < 0 ? axis + rank + 1 : axis;
  if (axis < 0 || axis > rank)
    throw Refused("expected an axis of the results of all steps, found " + std::to_string(axis));
  if (known && axis == 0) {
    Known all = *steps[0].known;
    if (logical::multiply(all.count(), std::ssize(steps)) > maxKnownElements)
      throw Refused("expected at most 2^26 elements of constants, found more");
    all.shape.insert(all.shape.begin(), std::ssize(steps));
    for (const Operand &step : steps.drop_front())
      all.numbers.insert(all.numbers.end(), step.known->numbers.begin(), step.known->numbers.end());
    made.known = std::make_shared<const Known>(std::move(all));
    return made;
  }
  SmallVector<logical::Value> values;
  for (const Operand &step : steps) {
    if (shapeOf(step) != shapeOf(steps[0]))
      throw Refused("expected results of one shape in all steps of a loop");
    values.push_back(logical::expandDims(step.lift(ops), {axis}));
  }
  made.known = nullptr;
  made.forBatches = nullptr;
  made.value = logical::concat(ops, values, static_cast<size_t>(axis));
  return made;
}

} // namespace

const Operand &Importer::operandOf(const Node &node, size_t index) {
  static const Operand none;
  return index < node.inputs.size() && !node.inputs[index].empty() ? values.at(node.inputs[index]) : none;
}

// The outputs of a graph of a node. Its names are gone afterwards, so that the next step may use them.
std::vector<Operand> Importer::evaluateBody(const Graph &body, ArrayRef<Operand> inputs, const std::string &name) {
  if (body.inputs.size() != inputs.size())
    throw Refused("expected a graph of " + std::to_string(inputs.size()) + " inputs, found " +
                  std::to_string(body.inputs.size()));
  std::vector<std::string> names;
  auto leave = llvm::make_scope_exit([&, outer = scope] {
    scope = outer;
    for (const std::string &each : names)
      values.erase(each);
  });
  auto define = [&](const std::string &defined, Operand operand) {
    if (defined.empty() || !values.emplace(defined, std::move(operand)).second)
      throw Refused("expected one value of the name '" + defined + "', found two");
    names.push_back(defined);
  };
  for (auto [port, input] : llvm::zip_equal(body.inputs, inputs))
    define(port.name, input);
  for (const Tensor &tensor : body.initializers) {
    if (isVariable(tensor, uses[tensor.name]))
      throw Refused("a parameter in the graph of a branch or a loop, '" + tensor.name +
                    "': expected the parameters of the model among its own initializers");
    define(tensor.name, {std::make_shared<const Known>(knownOf(tensor)), {}, nullptr, nullptr, tensor.type});
  }
  auto count = [&] {
    if (++bodyNodes > maxBodyNodes)
      throw Refused("expected at most 500000 nodes in all steps of loops, found more");
  };
  count();
  scope += name + "/";
  for (const Node &node : body.nodes) {
    count();
    bool made = succeeded(evaluate(node));
    names.insert(names.end(), node.outputs.begin(), node.outputs.end());
    if (!made)
      throw Reported();
  }
  std::vector<Operand> results;
  for (const Port &output : body.outputs) {
    auto found = values.find(output.name);
    if (found == values.end() || !found->second.isThere())
      throw Refused("expected outputs that a node makes, found '" + output.name + "'");
    results.push_back(found->second);
  }
  return results;
}

std::vector<Operand> Importer::evaluateIf(const Node &node) {
  bool chosen = isTrue(operandOf(node, 0), "a condition");
  return evaluateBody(bodyOf(node, chosen ? "then_branch" : "else_branch"), {}, layerOf(node));
}

std::optional<std::vector<Operand>> Importer::buildLoop(const Node &node, Steps &steps) {
  if (steps.count < 2 || steps.count > maxBodyNodes)
    return std::nullopt;
  ScopedDiagnosticHandler silent(builder.getContext(), [](Diagnostic &) { return success(); });
  auto leave = llvm::make_scope_exit([&, was = built] { built = was; });
  bool hadSum = hasSumOverBatch;
  const Graph &body = bodyOf(node, "body");
  try {
    logical::Ops ops{builder, locationOf(node), &budget};
    logical::Loop loop(ops, steps.count);
    built = &loop;
    std::vector<Operand> arguments;
    if (steps.counts) {
      std::vector<std::shared_ptr<const Known>> numbers;
      for (int64_t step = 0; step < steps.count; ++step)
        numbers.push_back(
            std::make_shared<const Known>(Known::scalar(static_cast<double>(step), Known::Type::Integer)));
      arguments.resize(2);
      arguments[0].type = ElementType::Int64;
      arguments[0].steps = loop.known(std::move(numbers)).steps;
      arguments[1].type = ElementType::Bool;
      arguments[1].known = std::make_shared<const Known>(Known::scalar(1, Known::Type::Boolean));
    }
    size_t front = arguments.size(), last = steps.counts ? 1 : 0; // of the body's inputs, and of its results
    SmallVector<size_t> changing;
    for (auto [i, operand] : llvm::enumerate(steps.carried)) {
      bool same = front + i < body.inputs.size() && last + i < body.outputs.size() &&
                  body.inputs[front + i].name == body.outputs[last + i].name;
      arguments.push_back(operand);
      if (same)
        continue;
      bool isKnownNumber = operand.known && operand.known->type != Known::Type::Float; // and may be asked for later
      if (isKnownNumber || operand.sequence || operand.forBatches || operand.steps)
        return std::nullopt;
      logical::Value start;
      loop.outside([&, &operand = operand] { start = operand.lift(ops); });
      arguments.back() = operand.withValue(loop.carry(start));
      changing.push_back(i);
    }
    for (const auto &[value, order] : steps.inputs)
      arguments.push_back({nullptr, loop.part(value, order)});
    std::vector<Operand> results = evaluateBody(body, arguments, layerOf(node));
    if (steps.counts) {
      if (results[0].steps)
        for (const auto &goesOn : llvm::enumerate(results[0].steps->ofStep))
          if (auto end = static_cast<int64_t>(goesOn.index()) + 1; goesOn.value()->numbers.at(0) == 0) {
            if (end == steps.count)
              break;
            steps.count = end;
            return std::nullopt;
          }
      if (!results[0].steps && !isTrue(results[0], "a condition of a loop"))
        return std::nullopt;
    }
    auto valueOf = [&](const Operand &result) {
      if (result.sequence || result.forBatches)
        throw Refused("a list, or a value that depends on the place of a sample, in a loop");
      return result.steps ? loop.part(result.steps) : result.lift(ops);
    };
    SmallVector<logical::Value> after;
    for (size_t i : changing) {
      if (results.at(last + i).known)
        return std::nullopt;
      after.push_back(valueOf(results[last + i]));
    }
    SmallVector<logical::Loop::Output> outputs;
    for (auto [i, order] : llvm::enumerate(steps.outputs))
      outputs.push_back({valueOf(results.at(last + steps.carried.size() + i)), order});
    SmallVector<logical::Value> made = loop.finish(after, outputs);
    std::vector<Operand> all = steps.carried;
    for (auto [number, i] : llvm::enumerate(changing))
      all[i] = results[last + i].withValue(made[number]);
    for (size_t i = 0; i < outputs.size(); ++i)
      all.push_back(results[last + steps.carried.size() + i].withValue(made[changing.size() + i]));
    return all;
  } catch (const Refused &) {
  } catch (const Reported &) {
  }
  hasSumOverBatch = hadSum;
  return std::nullopt;
}

// Operands: the most steps, whether there is a first one, values that go from step to step. The graph has the number of
// the step in place of the first, and gives whether there is a next one, the values, and what is put together.
std::vector<Operand> Importer::evaluateLoop(const Node &node) {
  const Graph &body = bodyOf(node, "body");
  const Operand &most = operandOf(node, 0);
  if (most.isThere() && (!most.known || most.known->hasBatch() || most.known->count() != 1))
    throw Refused("a number of steps that the data or the number of samples decides");
  double steps = most.isThere() ? most.known->numbers[0] : static_cast<double>(maxBodyNodes);
  bool goesOn = !operandOf(node, 1).isThere() || isTrue(operandOf(node, 1), "a condition of a loop");
  std::vector<Operand> carried;
  for (size_t i = 2; i < node.inputs.size(); ++i)
    carried.push_back(operandOf(node, i));
  size_t count = carried.size();
  if (body.outputs.size() < count + 1)
    throw Refused("expected a graph of " + std::to_string(count + 1) + " outputs or more, found " +
                  std::to_string(body.outputs.size()));
  if (goesOn && most.isThere()) {
    Steps all{static_cast<int64_t>(std::clamp<double>(steps, 0, maxBodyNodes + 1)), carried, {}, {}, true};
    all.outputs.resize(body.outputs.size() - 1 - count);
    for (int64_t tried = 0; tried != all.count;) { // again with fewer steps where the condition ends the loop
      tried = all.count;
      if (std::optional<std::vector<Operand>> built = buildLoop(node, all))
        return *built;
    }
  }
  std::vector<std::vector<Operand>> parts(body.outputs.size() - 1 - count);
  for (int64_t step = 0; goesOn && static_cast<double>(step) < steps; ++step) {
    std::vector<Operand> inputs = {
        {std::make_shared<const Known>(Known::scalar(static_cast<double>(step), Known::Type::Integer)),
         {},
         nullptr,
         nullptr,
         ElementType::Int64},
        {std::make_shared<const Known>(Known::scalar(1, Known::Type::Boolean)),
         {},
         nullptr,
         nullptr,
         ElementType::Bool}};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    std::vector<Operand> results = evaluateBody(body, inputs, layerOf(node) + "." + std::to_string(step));
    goesOn = isTrue(results[0], "a condition of a loop");
    carried.assign(results.begin() + 1, results.begin() + 1 + static_cast<int64_t>(count));
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i].push_back(results[1 + count + i]);
  }
  logical::Ops ops{builder, locationOf(node), &budget};
  for (const std::vector<Operand> &each : parts)
    carried.push_back(stacked(ops, each, 0));
  return carried;
}

// Operands: values that go from step to step, then those of which each step has one element along an axis.
std::vector<Operand> Importer::evaluateScan(const Node &node) {
  const Graph &body = bodyOf(node, "body");
  auto given = node.attributes.find("num_scan_inputs");
  int64_t scanned = given == node.attributes.end() ? 0 : given->second.integer;
  constexpr int64_t withoutBatch = 9; // the version before has a batch axis of its own
  if (model.opset < withoutBatch)
    throw Refused("a Scan before opset 9: export the model with opset_version=17");
  if (scanned < 1 || scanned > std::ssize(node.inputs))
    throw Refused("expected num_scan_inputs of 1 to " + std::to_string(node.inputs.size()) + ", found " +
                  std::to_string(scanned));
  size_t count = node.inputs.size() - static_cast<size_t>(scanned);
  if (body.outputs.size() < count)
    throw Refused("expected a graph of " + std::to_string(count) + " outputs or more, found " +
                  std::to_string(body.outputs.size()));
  size_t made = body.outputs.size() - count;
  SmallVector<int64_t> axes = integersOf(node, "scan_input_axes", static_cast<size_t>(scanned)),
                       backward = integersOf(node, "scan_input_directions", static_cast<size_t>(scanned)),
                       resultAxes = integersOf(node, "scan_output_axes", made),
                       resultsBackward = integersOf(node, "scan_output_directions", made);
  std::vector<Operand> carried;
  for (size_t i = 0; i < count; ++i)
    carried.push_back(operandOf(node, i));
  int64_t steps = -1;
  for (int64_t i = 0; i < scanned; ++i) {
    Shape shape = shapeOf(operandOf(node, count + static_cast<size_t>(i)));
    axes[i] = static_cast<int64_t>(Call::axisOf(axes[i], shape.size()));
    if (shape[axes[i]].batch || (steps >= 0 && shape[axes[i]].times != steps))
      throw Refused("expected a step for each element along one axis that is not the batch, found " +
                    logical::describe(shape));
    steps = shape[axes[i]].times;
  }
  logical::Ops ops{builder, locationOf(node), &budget};
  auto orderOf = [](int64_t backward) {
    return backward ? logical::Loop::Order::Backward : logical::Loop::Order::Forward;
  };
  Steps all{steps, carried, {}, {}};
  for (size_t i = 0; i < made; ++i)
    all.outputs.push_back(orderOf(resultsBackward[i]));
  bool haveValues = true;
  for (int64_t i = 0; haveValues && i < scanned; ++i) {
    const Operand &operand = operandOf(node, count + static_cast<size_t>(i));
    haveValues = operand.value && !operand.forBatches;
    if (haveValues)
      all.inputs.emplace_back(logical::moveAxis(operand.value, static_cast<size_t>(axes[i]), 0), orderOf(backward[i]));
  }
  if (std::optional<std::vector<Operand>> built = haveValues ? buildLoop(node, all) : std::nullopt) {
    for (size_t i = 0; i < made; ++i) {
      Operand &result = (*built)[count + i];
      int64_t axis = resultAxes[i] < 0 ? resultAxes[i] + static_cast<int64_t>(result.value.rank()) : resultAxes[i];
      if (axis < 0 || axis >= static_cast<int64_t>(result.value.rank()))
        throw Refused("expected an axis of the results of all steps, found " + std::to_string(axis));
      result.value = logical::moveAxis(result.value, 0, static_cast<size_t>(axis));
    }
    return *built;
  }
  std::vector<std::vector<Operand>> parts(made);
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<Operand> inputs = carried;
    for (int64_t i = 0; i < scanned; ++i)
      inputs.push_back(elementOf(ops, operandOf(node, count + static_cast<size_t>(i)), static_cast<size_t>(axes[i]),
                                 backward[i] ? steps - 1 - step : step));
    std::vector<Operand> results = evaluateBody(body, inputs, layerOf(node) + "." + std::to_string(step));
    carried.assign(results.begin(), results.begin() + static_cast<int64_t>(count));
    for (size_t i = 0; i < made; ++i)
      parts[i].push_back(results[count + i]);
  }
  for (auto [i, each] : llvm::enumerate(parts)) {
    if (resultsBackward[i])
      std::reverse(each.begin(), each.end());
    carried.push_back(stacked(ops, each, resultAxes[i]));
  }
  return carried;
}

LogicalResult Importer::evaluateControl(const Node &node) {
  try {
    static constexpr llvm::StringLiteral known[] = {
        "then_branch",           "else_branch",           "body",
        "num_scan_inputs",       "scan_input_axes",       "scan_output_axes",
        "scan_input_directions", "scan_output_directions"};
    for (const auto &[name, attribute] : node.attributes)
      if (!llvm::is_contained(known, name))
        throw Refused("expected attributes that are known, found " + name);
    std::vector<Operand> results = node.op == "If"     ? evaluateIf(node)
                                   : node.op == "Loop" ? evaluateLoop(node)
                                                       : evaluateScan(node);
    for (auto [index, name] : llvm::enumerate(node.outputs)) {
      if (name.empty())
        continue;
      if (index >= results.size())
        throw Refused("expected " + std::to_string(results.size()) + " outputs, found more");
      if (!values.emplace(name, results[index]).second)
        throw Refused("expected one value of the name '" + name + "', found two");
    }
    return success();
  } catch (const Refused &refused) {
    emitError(locationOf(node)) << described(node) << ": " << refused.what();
  } catch (const Reported &) { // at a node of a body
  }
  for (const std::string &name : node.outputs) // what depends on them is left out
    values.emplace(name, Operand());
  return failure();
}

} // namespace mtc::onnx
