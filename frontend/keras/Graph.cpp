// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/Graph.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

namespace mtc::keras {
namespace {

using llvm::StringRef;

constexpr unsigned maxModelDepth = 16;
constexpr size_t maxLayers = 100000;

// An error; thrown and caught in this file.
struct Problem {
  std::string text;
};

[[noreturn]] void fail(const std::string &text) { throw Problem{text}; }

bool upper(char c) { return c >= 'A' && c <= 'Z'; }
bool lower(char c) { return c >= 'a' && c <= 'z'; }

// Keras' naming.to_snake_case: an underscore before a capital that is followed by lower case, and between lower case
// and a capital.
std::string snakeCase(StringRef name) {
  std::string words;
  for (size_t i = 0; i < name.size();) {
    if (i + 2 < name.size() && upper(name[i + 1]) && lower(name[i + 2])) {
      words += name.slice(i, i + 1).str() + "_" + name[i + 1];
      for (i += 2; i < name.size() && lower(name[i]); ++i)
        words += name[i];
    } else {
      words += name[i++];
    }
  }
  std::string result;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i && lower(words[i - 1]) && upper(words[i]))
      result += '_';
    result += words[i];
  }
  return StringRef(result).lower();
}

class GraphReader {
public:
  GraphReader(Graph &graph, unsigned depth) : graph(graph), depth(depth) {}

  // `scope` is a prefix of the names of variables, `weights` of their paths in the file.
  void read(const Json &object, const std::string &scope, const std::string &weights, bool frozen);

private:
  void readLayer(const Json &object, const std::string &scope, const std::string &weights, bool frozen);
  void unwrap(Layer &layer);
  void chain(const Json &config);
  void readCalls(const Json &object, Layer &layer);
  Call readCall(const Json &node, const std::string &layer);
  Call readLegacyCall(const Json &node, const std::string &layer);
  Argument readArgument(const Json &value, const std::string &layer, unsigned nesting = 0);
  TensorRef readRef(const Json &triple, const std::string &user);
  void readEnds(const Json *ends, bool inputs);
  void countCallsFromZero();

  Graph &graph;
  unsigned depth;
  llvm::StringMap<size_t> byName;
  llvm::StringMap<unsigned> classes;
};

bool isSequential(StringRef className) { return className == "Sequential"; }
bool isFunctional(StringRef className) { return className == "Functional" || className == "Model"; }

void GraphReader::read(const Json &object, const std::string &scope, const std::string &weights, bool frozen) {
  if (depth > maxModelDepth)
    fail("expected models nested at most " + std::to_string(maxModelDepth) + " deep, found more");
  std::string className = textMember(object, "class_name");
  const Json *config = member(object, "config");
  // The oldest Sequential models have the list of layers as config.
  const Json *layers = config && config->is_array() ? config : config ? member(*config, "layers") : nullptr;
  if (!isSequential(className) && !isFunctional(className))
    fail(className.empty()
             ? "expected a Keras model, found no class_name"
             : "expected a Sequential or Functional model, found the class '" + className +
                   "': a subclassed model's layers are Python code; write it with keras.Model(inputs, outputs)");
  if (!layers || !layers->is_array())
    fail("expected a list of layers in the " + className + " model, found none");
  graph.name = textMember(*config, "name");
  if (const Json *trainable = member(*config, "trainable"); trainable && *trainable == false)
    frozen = true;
  if (layers->size() > maxLayers)
    fail("expected at most " + std::to_string(maxLayers) + " layers, found " + std::to_string(layers->size()));
  graph.layers.reserve(layers->size() + 1);
  std::string inner = isSequential(className) ? scope + graph.name + "/" : scope;
  std::string folder = weights.empty() ? "layers/" : weights + "/layers/";
  for (const Json &layer : *layers)
    readLayer(layer, inner, folder, frozen);
  for (size_t i = 0; i < graph.layers.size(); ++i)
    if (graph.layers[i].className == "InputLayer" && isSequential(className))
      graph.inputs.push_back(i);
  if (isSequential(className))
    return chain(*config);
  for (size_t i = 0; i < layers->size(); ++i)
    readCalls((*layers)[i], graph.layers[i]);
  countCallsFromZero();
  readEnds(member(*config, "input_layers"), true);
  readEnds(member(*config, "output_layers"), false);
}

void GraphReader::readLayer(const Json &object, const std::string &scope, const std::string &weights, bool frozen) {
  Layer layer;
  layer.className = textMember(object, "class_name");
  layer.module = textMember(object, "module");
  layer.config = member(object, "config");
  if (layer.className.empty() || !layer.config)
    fail("expected a layer with class_name and config, found " + describe(object));
  // A functional model has the layer's name outside of its config.
  layer.name = textMember(object, "name");
  if (layer.name.empty())
    layer.name = textMember(*layer.config, "name");
  if (layer.name.empty())
    layer.name = snakeCase(layer.className);
  if (!byName.try_emplace(layer.name, graph.layers.size()).second)
    fail("expected layers of different names, found a second '" + layer.name + "'");
  const Json *trainable = member(*layer.config, "trainable");
  layer.frozen = frozen || (trainable && *trainable == false);
  layer.scope = scope;
  // The path contains the name of the Python class, which differs from the serialized name for one layer.
  std::string snake = snakeCase(layer.className == "GroupQueryAttention" ? "GroupedQueryAttention" : layer.className);
  unsigned number = classes[snake]++;
  layer.weights = weights + snake + (number ? "_" + std::to_string(number) : "");
  if (isSequential(layer.className) || (isFunctional(layer.className) && member(*layer.config, "layers"))) {
    layer.model = std::make_unique<Graph>();
    GraphReader(*layer.model, depth + 1).read(object, scope, layer.weights, layer.frozen);
  }
  if (layer.className == "TimeDistributed")
    unwrap(layer);
  graph.layers.push_back(std::move(layer));
}

// A TimeDistributed layer applies a layer to each step of a sequence. A layer that works along the last axis does the
// same by itself, so it replaces the wrapper.
void GraphReader::unwrap(Layer &layer) {
  static constexpr const char *alongLast[] = {"Dense",
                                              "Embedding",
                                              "Activation",
                                              "ReLU",
                                              "LeakyReLU",
                                              "ELU",
                                              "Softmax",
                                              "Dropout",
                                              "Identity",
                                              "GaussianNoise",
                                              "GaussianDropout",
                                              "Rescaling",
                                              "UnitNormalization",
                                              "LayerNormalization",
                                              "RMSNormalization"};
  const Json *held = member(*layer.config, "layer");
  const Json *config = held ? member(*held, "config") : nullptr;
  if (!config || llvm::none_of(alongLast, [&](StringRef known) { return textMember(*held, "class_name") == known; }))
    return;
  const Json *axis = member(*config, "axis"), *noise = member(*config, "noise_shape");
  if ((axis && *axis != -1 && *axis != Json::array({-1})) || (noise && !noise->is_null()))
    return;
  layer.className = textMember(*held, "class_name");
  layer.module = textMember(*held, "module");
  layer.inner = textMember(*config, "name");
  layer.config = config;
  layer.weights += "/layer";
  if (const Json *trainable = member(*config, "trainable"); trainable && *trainable == false)
    layer.frozen = true;
}

// Links the layers of a Sequential model: each layer is called once, with the result of the previous one. Without an
// InputLayer, the input has the shape with which the model was built.
void GraphReader::chain(const Json &config) {
  if (graph.inputs.size() > 1 || (graph.inputs.size() == 1 && graph.inputs[0] != 0))
    fail("expected an InputLayer first in the Sequential model '" + graph.name + "', found one elsewhere");
  if (graph.layers.empty())
    fail("expected layers in the Sequential model '" + graph.name + "', found none");
  if (graph.inputs.empty()) {
    Layer input;
    input.className = "InputLayer";
    input.name = graph.name + "_input";
    // `build_input_shape`, or the input shape of the first layer.
    input.config = member(config, "build_input_shape") ? &config : graph.layers[0].config;
    graph.layers.insert(graph.layers.begin(), std::move(input));
    graph.inputs.push_back(0);
  }
  graph.layers[0].calls.emplace_back();
  for (size_t i = 1; i < graph.layers.size(); ++i) {
    Argument argument;
    argument.kind = Argument::Kind::Tensor;
    argument.tensor.layer = i - 1;
    graph.layers[i].calls.emplace_back().args.push_back(argument);
  }
  graph.outputs.push_back({graph.layers.size() - 1, 0, 0});
  graph.inputNames.push_back(graph.layers.front().name);
  graph.outputNames.push_back(graph.layers.back().name);
}

void GraphReader::readCalls(const Json &object, Layer &layer) {
  const Json *nodes = member(object, "inbound_nodes");
  if (layer.className == "InputLayer") {
    layer.calls.emplace_back();
    return;
  }
  if (!nodes || !nodes->is_array())
    fail("layer '" + layer.name + "': expected a list of inbound_nodes, found none");
  for (const Json &node : *nodes)
    layer.calls.push_back(node.is_array() ? readLegacyCall(node, layer.name) : readCall(node, layer.name));
}

// Reads a call of the form {"args": [...], "kwargs": {...}}.
Call GraphReader::readCall(const Json &node, const std::string &layer) {
  const Json *args = member(node, "args"), *kwargs = member(node, "kwargs");
  if (!args || !args->is_array())
    fail("layer '" + layer + "': expected a node with args, found " + describe(node));
  Call call;
  for (const Json &value : *args)
    call.args.push_back(readArgument(value, layer));
  if (kwargs && kwargs->is_object())
    for (const auto &[key, value] : kwargs->items())
      call.kwargs.emplace_back(key, readArgument(value, layer));
  return call;
}

// Reads a call of the form [["layer", node, tensor, {kwargs}], ...]: one tensor, or a list of several.
Call GraphReader::readLegacyCall(const Json &node, const std::string &layer) {
  Call call;
  Argument list;
  list.kind = Argument::Kind::List;
  // A single reference may be without the enclosing list.
  bool bare = !node.empty() && node[0].is_string();
  for (const Json &entry : bare ? Json::array({node}) : node) {
    Argument &argument = list.list.emplace_back();
    argument.kind = Argument::Kind::Tensor;
    argument.tensor = readRef(entry, layer);
  }
  const Json *kwargs =
      bare ? (node.size() > 3 ? &node[3] : nullptr) : (!node.empty() && node[0].size() > 3 ? &node[0][3] : nullptr);
  if (kwargs && kwargs->is_object())
    for (const auto &[key, value] : kwargs->items())
      call.kwargs.emplace_back(key, readArgument(value, layer));
  if (list.list.empty())
    fail("layer '" + layer + "': expected a node with tensors, found an empty one");
  call.args.push_back(list.list.size() == 1 ? list.list[0] : std::move(list));
  return call;
}

Argument GraphReader::readArgument(const Json &value, const std::string &layer, unsigned nesting) {
  Argument argument;
  if (textMember(value, "class_name") == "__keras_tensor__") {
    const Json *config = member(value, "config");
    const Json *history = config ? member(*config, "keras_history") : nullptr;
    if (!history)
      fail("layer '" + layer + "': expected a tensor with keras_history, found none");
    argument.kind = Argument::Kind::Tensor;
    argument.tensor = readRef(*history, layer);
  } else if (value.is_array()) {
    argument.kind = Argument::Kind::List;
    for (const Json &item : value)
      argument.list.push_back(readArgument(item, layer, nesting + 1));
  } else if (value.is_object() && !value.contains("class_name")) {
    argument.kind = Argument::Kind::List;
    for (const auto &[key, item] : value.items()) {
      argument.keys.push_back(key);
      argument.list.push_back(readArgument(item, layer, nesting + 1));
    }
  }
  argument.constant = &value;
  return argument;
}

TensorRef GraphReader::readRef(const Json &triple, const std::string &user) {
  auto index = [](const Json &value) { return value.is_number_unsigned() && value.get<uint64_t>() < (1u << 30); };
  if (!triple.is_array() || triple.size() < 3 || !triple[0].is_string() || !index(triple[1]) || !index(triple[2]))
    fail("layer '" + user + "': expected a tensor as [layer, node, tensor], found " + describe(triple));
  auto found = byName.find(triple[0].get<std::string>());
  if (found == byName.end())
    fail("layer '" + user + "': expected the name of a layer of the model, found '" + triple[0].get<std::string>() +
         "'");
  return {found->second, triple[1].get<size_t>(), triple[2].get<size_t>()};
}

void visitRefs(Argument &argument, llvm::function_ref<void(TensorRef &)> visit) {
  if (argument.kind == Argument::Kind::Tensor)
    visit(argument.tensor);
  for (Argument &item : argument.list)
    visitRefs(item, visit);
}

// A nested functional model has a node of its own before the nodes of its calls. Some versions of Keras count it in
// references to calls, others do not. Every call is referred to, so a reference to number 0, or to the number of calls,
// shows which is the case.
void GraphReader::countCallsFromZero() {
  auto forEachRef = [&](llvm::function_ref<void(TensorRef &)> visit) {
    for (Layer &layer : graph.layers)
      for (Call &call : layer.calls) {
        for (Argument &argument : call.args)
          visitRefs(argument, visit);
        for (auto &[name, argument] : call.kwargs)
          visitRefs(argument, visit);
      }
  };
  std::vector<bool> fromOne(graph.layers.size());
  forEachRef([&](TensorRef &ref) {
    const Layer &layer = graph.layers[ref.layer];
    if (layer.model && ref.node > 0 && ref.node == layer.calls.size())
      fromOne[ref.layer] = true;
  });
  forEachRef([&](TensorRef &ref) {
    if (fromOne[ref.layer] && ref.node > 0)
      --ref.node;
  });
}

// Reads ["name", 0, 0], or a list or object of references of this form.
void GraphReader::readEnds(const Json *ends, bool inputs) {
  std::string what = inputs ? "input_layers" : "output_layers";
  if (!ends || !ends->is_structured() || ends->empty())
    fail("expected " + what + " of the model '" + graph.name + "', found none");
  auto add = [&](const Json &triple, const std::string &key) {
    TensorRef ref = readRef(triple, what);
    const Layer &layer = graph.layers[ref.layer];
    // These references always count the model's own node.
    if (layer.model && !isSequential(layer.className) && ref.node > 0)
      --ref.node;
    (inputs ? graph.inputNames : graph.outputNames).push_back(key.empty() ? layer.name : key);
    if (!inputs)
      graph.outputs.push_back(ref);
    else if (layer.className == "InputLayer")
      graph.inputs.push_back(ref.layer);
    else
      fail("expected an InputLayer in input_layers, found '" + graph.layers[ref.layer].name + "'");
  };
  if (ends->is_array() && (*ends)[0].is_string())
    return add(*ends, "");
  for (const auto &item : ends->items())
    add(item.value(), ends->is_object() ? item.key() : "");
}

} // namespace

std::string readGraph(const Json &json, Graph &graph) {
  try {
    GraphReader(graph, 0).read(json, "", "", false);
  } catch (const Problem &problem) {
    return problem.text;
  }
  return {};
}

} // namespace mtc::keras
