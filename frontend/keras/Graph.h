// SPDX-License-Identifier: Apache-2.0
//
// A Keras model as a graph of layers. Both serialization formats, and Sequential and Functional models, are converted
// to it.
#ifndef FRONTEND_KERAS_GRAPH_H
#define FRONTEND_KERAS_GRAPH_H

#include "frontend/Config.h"

#include "mlir/IR/Value.h"

#include <memory>
#include <string>
#include <vector>

namespace mtc::keras {

// Output number `tensor` of call number `node` of layer number `layer`.
struct TensorRef {
  size_t layer = 0, node = 0, tensor = 0;
};

// An argument of a call: a tensor, a list, a dictionary (a list with keys), or a constant.
struct Argument {
  enum class Kind { Tensor, List, Constant } kind = Kind::Constant;
  TensorRef tensor;
  std::vector<Argument> list;
  std::vector<std::string> keys; // empty for a list
  const Json *constant = nullptr;
};

struct Call {
  std::vector<Argument> args;
  std::vector<std::pair<std::string, Argument>> kwargs;
};

// Variables of a layer, in Keras' order in files.
struct LayerVariable {
  std::string name, path; // name of the mt.variable; path in the weights file
  mlir::Value value;
  bool trainable; // as the layer defines it; trainable variables of a frozen layer are still stored first
};

struct Graph;

struct Layer {
  std::string name, module, className;
  std::string inner;            // name of the layer inside of a TimeDistributed layer, which it replaces
  const Json *config = nullptr; // config of the layer itself
  bool frozen = false;          // the layer, or a model that contains it, has trainable = false
  std::string scope;            // prefix of the names of its variables: "model/"
  std::string weights;          // path in the weights file: "layers/dense_1"
  std::vector<Call> calls;
  std::unique_ptr<Graph> model;         // a nested model
  unsigned streams = 0;                 // number of streams of random numbers: one per call
  std::vector<LayerVariable> variables; // set by the first call of the layer
};

struct Graph {
  std::string name;
  std::vector<Layer> layers;  // in Keras' order
  std::vector<size_t> inputs; // InputLayers
  std::vector<TensorRef> outputs;
  // Names in calls, losses and metrics: names of layers, or the keys of a dictionary. An output whose name is in use
  // gets a number as suffix.
  std::vector<std::string> inputNames, outputNames;
};

// Reads the object of a Sequential or Functional model. `json` must outlive the graph. Returns an empty text, or the
// error.
std::string readGraph(const Json &json, Graph &graph);

} // namespace mtc::keras

#endif
