// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/Importer.h"
#include "frontend/keras/Precision.h"

#include "frontend/keras/LayerTable.h"

#include "llvm/ADT/StringSet.h"

#include <queue>

using namespace mlir;

namespace mtc::keras {

// Nested shared models can multiply the number of calls; a real model has a few thousand.
static constexpr size_t maxCalls = 200000;
static constexpr int64_t maxElements = int64_t{1} << 40;

static void forEachTensor(const Argument &argument, llvm::function_ref<void(const TensorRef &)> visit) {
  if (argument.kind == Argument::Kind::Tensor)
    visit(argument.tensor);
  for (const Argument &item : argument.list)
    forEachTensor(item, visit);
}

static void forEachTensor(const Call &call, llvm::function_ref<void(const TensorRef &)> visit) {
  for (const Argument &argument : call.args)
    forEachTensor(argument, visit);
  for (const auto &[name, argument] : call.kwargs)
    forEachTensor(argument, visit);
}

static void findUnsupported(const Graph &graph, SmallVectorImpl<const Layer *> &unsupported) {
  for (const Layer &layer : graph.layers)
    if (layer.model)
      findUnsupported(*layer.model, unsupported);
    else if (layer.className != "InputLayer" && !findLayer(layer))
      unsupported.push_back(&layer);
}

LogicalResult Importer::checkLayers() {
  SmallVector<const Layer *> unsupported;
  findUnsupported(graph, unsupported);
  if (unsupported.empty())
    return success();
  InFlightDiagnostic error = emitError(builder.getUnknownLoc())
                             << "expected layers that are supported, found " << unsupported.size() << " that are not";
  for (const Layer *layer : unsupported) {
    std::string advice = adviceFor(*layer);
    error.attachNote(locationOf(builder, *layer))
        << "a layer of class " << layer->className << (advice.empty() ? "" : ": ") << advice;
  }
  return error;
}

// Element type of an input, from Keras' dtype.
static Type elementType(OpBuilder &builder, const std::string &dtype) {
  if (dtype == "float32" || dtype == "float64")
    return builder.getF32Type();
  // Integers of any size are imported as int32.
  return dtype.starts_with("int") || dtype.starts_with("uint") ? builder.getI32Type() : Type();
}

SmallVector<int64_t> Importer::readSizes(const Layer &layer, Config &config) const {
  const Json *shape = nullptr;
  for (const char *key : {"batch_shape", "batch_input_shape", "build_input_shape"})
    if (!shape)
      shape = config.find(key);
  auto requested = shapes.find(layer.name);
  if (requested == shapes.end() && graph.inputs.size() == 1)
    requested = shapes.find("");
  bool has = requested != shapes.end();
  if (!shape || !shape->is_array() || shape->empty()) {
    if (has)
      return SmallVector<int64_t>(requested->second.begin(), requested->second.end());
    config.error("expected the shape of the input, found none: build the model first, with keras.Input or "
                 "model.build(shape), or give "
                 "its sizes, as --input-shape 28,28,1");
    return {};
  }
  if (!(*shape)[0].is_null())
    config.error("expected a batch axis of any size (null), found " + describe((*shape)[0]) +
                 ": use keras.Input(shape=...)");
  constexpr size_t maxAxes = 8;
  if (shape->size() > maxAxes)
    config.error("expected at most 8 axes, found " + std::to_string(shape->size()));
  else if (has && requested->second.size() + 1 != shape->size())
    config.error("expected an input shape of " + std::to_string(shape->size() - 1) + " sizes, found " +
                 std::to_string(requested->second.size()));
  if (config.failed())
    return {};
  SmallVector<int64_t> sizes;
  for (size_t i = 1; i < shape->size(); ++i) {
    const Json &size = (*shape)[i];
    bool open = size.is_null();
    if (open && !has && length && i == 1) {
      sizes.push_back(length);
      continue;
    }
    if (open && !has) {
      config.error("expected sizes of all axes but the batch axis, found " + shape->dump() +
                   ": set the sizes that are null, as --input-shape 224,224,3, or in keras.Input" +
                   (i == 1 && shape->size() == 2 ? "; sequences of several lengths: --lengths 64,128" : ""));
      return {};
    }
    if (!open && (!size.is_number_unsigned() || size.get<uint64_t>() < 1 ||
                  size.get<uint64_t>() > static_cast<uint64_t>(maxUnits))) {
      config.error("expected sizes from 1 to " + std::to_string(maxUnits) + " after the batch axis, found " +
                   describe(size));
      return {};
    }
    sizes.push_back(open ? requested->second[i - 1] : size.get<int64_t>());
    if (has && sizes.back() != requested->second[i - 1])
      config.error("expected an input shape with the model's own size " + std::to_string(sizes.back()) + ", found " +
                   std::to_string(requested->second[i - 1]));
  }
  return sizes;
}

// Checks that every shape of the options belongs to an input.
LogicalResult Importer::checkShapes() const {
  for (const auto &[name, shape] : shapes) {
    std::string names;
    bool isInput = name.empty() && graph.inputs.size() == 1;
    for (size_t index : graph.inputs) {
      isInput |= graph.layers[index].name == name;
      names += (names.empty() ? "" : ", ") + graph.layers[index].name;
    }
    if (!isInput)
      return emitError(builder.getUnknownLoc()) << "expected input shapes of " << names << ", found "
                                                << (name.empty() ? "one without a name" : "one of '" + name + "'");
  }
  return success();
}

// The name of a dtype or of a policy.
static std::string dtypeName(const Json &config) {
  const Json *dtype = member(config, "dtype");
  const Json *policy = dtype ? member(*dtype, "config") : nullptr;
  return policy ? textMember(*policy, "name") : textMember(config, "dtype");
}

static bool hasDoubles(const Graph &graph) {
  return llvm::any_of(graph.layers, [](const Layer &layer) {
    return dtypeName(*layer.config) == "float64" || (layer.model && hasDoubles(*layer.model));
  });
}

Value Importer::makeInput(const Layer &layer) {
  Location location = locationOf(builder, layer);
  Config config(*layer.config, [&](const std::string &message) { emitError(location) << message; });
  const Json *dtype = config.find("dtype");
  std::string name = dtype && dtype->is_string() ? dtype->get<std::string>() : "float32";
  SmallVector<int64_t> sizes = {ShapedType::kDynamic};
  llvm::append_range(sizes, readSizes(layer, config));
  if (layer.className == "InputLayer" && layer.config->contains("batch_shape")) {
    config.expect("sparse", false);
    config.expect("ragged", false);
    config.expect("optional", false);
  }
  Type element = elementType(builder, name);
  if (!element)
    config.error("expected an input of float32 or of integers, found " + name +
                 ": build the model with keras.Input(dtype=\"float32\")");
  if (sizes.size() > 8)
    config.error("expected at most 8 axes, found " + std::to_string(sizes.size()));
  if (config.failed())
    return {};
  return mt::InputOp::create(builder, location, RankedTensorType::get(sizes, element), layer.name, IntegerAttr());
}

Tensor Importer::find(const TensorRef &ref, const Results &results) const {
  const SmallVector<Tensor> &values = results[ref.layer][ref.node];
  return ref.tensor < values.size() ? values[ref.tensor] : Tensor();
}

Operand Importer::resolve(const Argument &argument, const Results &results) const {
  Operand operand;
  operand.constant = argument.constant;
  if (argument.kind == Argument::Kind::Tensor) {
    Tensor found = find(argument.tensor, results);
    operand.tensor = found.value;
    operand.mask = found.mask;
  }
  for (const Argument &item : argument.list)
    operand.list.push_back(resolve(item, results));
  operand.keys = argument.keys;
  return operand;
}

LogicalResult Importer::evaluateCall(Layer &layer, const Call &call, const Results &results, Graph &,
                                     SmallVectorImpl<Tensor> &values) {
  Location location = locationOf(builder, layer);
  LogicalResult status = success();
  forEachTensor(call, [&](const TensorRef &ref) {
    if (!find(ref, results).value)
      status = emitError(location) << "expected an output of the layer before it, found number " << ref.tensor
                                   << ", which is not there";
  });
  if (failed(status))
    return failure();
  if (++calls > maxCalls)
    return emitError(location) << "expected at most " << maxCalls << " calls of layers, found more";
  std::vector<Operand> args;
  std::vector<std::pair<std::string, Operand>> kwargs;
  for (const Argument &argument : call.args)
    args.push_back(resolve(argument, results));
  for (const auto &[name, argument] : call.kwargs)
    kwargs.emplace_back(name, resolve(argument, results));
  if (layer.model) {
    SmallVector<Tensor> inputs;
    auto add = [&](const Operand &operand) { inputs.push_back({operand.tensor, operand.mask}); };
    const Operand *only = args.size() == 1 && !args[0].tensor ? &args[0] : nullptr;
    if (only && !only->keys.empty())
      for (const std::string &name : layer.model->inputNames) {
        auto found = llvm::find(only->keys, name);
        if (found == only->keys.end())
          return emitError(location) << "expected a call of the model with a tensor '" << name << "', found none";
        add(only->list[static_cast<size_t>(found - only->keys.begin())]);
      }
    else
      for (const Operand &operand : only ? only->list : args)
        add(operand);
    if (inputs.size() != layer.model->inputs.size() ||
        llvm::any_of(inputs, [](const Tensor &input) { return !input.value; }))
      return emitError(location) << "expected a call of the model with " << layer.model->inputs.size()
                                 << " tensors, found " << inputs.size() << " arguments";
    return evaluate(*layer.model, inputs, values);
  }
  LayerBuilder built(builder, layer, std::move(args), std::move(kwargs), hasWeights);
  Block &block = *builder.getInsertionBlock();
  Operation *last = block.empty() ? nullptr : &block.back();
  Value value = findLayer(layer)(built);
  if (value)
    passMask(built);
  keepsMasks |= built.outputMask && layer.className == "MultiHeadAttention";
  markPrecision(block, last, built.precision);
  if (!built.finish(value) || !value)
    return failure();
  int64_t elements = 1;
  for (int64_t size : LayerBuilder::shapeOf(value))
    if (!ShapedType::isDynamic(size) && (__builtin_mul_overflow(elements, size, &elements) || elements > maxElements))
      return emitError(location) << "expected at most 2^40 elements per sample, found " << value.getType();
  values.push_back({value, built.outputMask});
  for (Value other : built.others)
    values.push_back({other, Value()});
  return success();
}

LogicalResult Importer::evaluate(Graph &graph, ArrayRef<Tensor> inputs, SmallVectorImpl<Tensor> &outputs) {
  Results results(graph.layers.size());
  // Evaluates calls in the order of their layers, as far as dependencies allow.
  using Key = std::pair<size_t, size_t>;
  std::priority_queue<Key, std::vector<Key>, std::greater<Key>> ready;
  std::map<Key, std::vector<Key>> readers;
  std::map<Key, size_t> missing;
  size_t left = 0;
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    Layer &layer = graph.layers[i];
    results[i].resize(layer.calls.size());
    for (size_t c = 0; c < layer.calls.size(); ++c, ++left) {
      LogicalResult valid = success();
      auto visit = [&](Argument &argument, auto &&self) -> void {
        if (argument.kind == Argument::Kind::Tensor) {
          const Layer &from = graph.layers[argument.tensor.layer];
          if (argument.tensor.node >= from.calls.size()) {
            valid = emitError(locationOf(builder, layer))
                    << "expected one of the " << from.calls.size() << " calls of '" << from.name << "', found number "
                    << argument.tensor.node;
            return;
          }
          readers[{argument.tensor.layer, argument.tensor.node}].push_back({i, c});
          ++missing[{i, c}];
        }
        for (Argument &item : argument.list)
          self(item, self);
      };
      for (Argument &argument : layer.calls[c].args)
        visit(argument, visit);
      for (auto &[name, argument] : layer.calls[c].kwargs)
        visit(argument, visit);
      if (failed(valid))
        return failure();
      if (!missing.count({i, c}))
        ready.push({i, c});
    }
  }
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    results[graph.inputs[i]][0].assign(1, inputs[i]);
  while (!ready.empty()) {
    auto [i, c] = ready.top();
    ready.pop();
    --left;
    Layer &layer = graph.layers[i];
    if (layer.className == "InputLayer") {
      if (results[i][c].empty())
        return emitError(locationOf(builder, layer))
               << "expected an input of the model, found an InputLayer that is none";
    } else if (failed(evaluateCall(layer, layer.calls[c], results, graph, results[i][c]))) {
      return failure();
    }
    for (const Key &reader : readers[{i, c}])
      if (--missing[reader] == 0)
        ready.push(reader);
  }
  if (left)
    return emitError(builder.getUnknownLoc())
           << "expected layers in an order in which they can be called, found a cycle in the model '" << graph.name
           << "'";
  for (const TensorRef &ref : graph.outputs) {
    Tensor value = ref.node < graph.layers[ref.layer].calls.size() ? find(ref, results) : Tensor();
    if (!value.value)
      return emitError(locationOf(builder, graph.layers[ref.layer]))
             << "expected output " << ref.tensor << " of call " << ref.node << ", found none";
    outputs.push_back(value);
  }
  return success();
}

LogicalResult Importer::run(std::vector<Output> &outputs) {
  if (failed(checkLayers()) || failed(checkShapes()))
    return failure();
  if (hasDoubles(graph))
    emitWarning(builder.getUnknownLoc()) << "the model is of float64, and is computed in float32 here";
  SmallVector<Tensor> inputs, values;
  for (size_t index : graph.inputs) {
    inputs.push_back({makeInput(graph.layers[index]), Value()});
    if (!inputs.back().value)
      return failure();
  }
  if (failed(evaluate(graph, inputs, values)))
    return failure();
  if (keepsMasks)
    emitWarning(builder.getUnknownLoc()) << "a mask of the input of MultiHeadAttention is still used after the layer, "
                                            "where Keras drops it and may count padding in the loss";
  llvm::StringSet<> usedNames;
  for (size_t index : graph.inputs)
    usedNames.insert(graph.layers[index].name);
  for (auto [name, value] : llvm::zip_equal(graph.outputNames, values)) {
    std::string free = name;
    for (unsigned number = 1; !usedNames.insert(free).second; ++number)
      free = name + "_" + std::to_string(number);
    outputs.push_back({free, value.value, value.mask});
  }
  return success();
}

} // namespace mtc::keras
