// SPDX-License-Identifier: Apache-2.0
//
// A Keras model as a graph of layers: both serialisation grammars, Sequential and Functional, become this.
#ifndef FRONTEND_KERAS_GRAPH_H
#define FRONTEND_KERAS_GRAPH_H

#include "frontend/Config.h"

#include "mlir/IR/Value.h"

#include <memory>
#include <string>
#include <vector>

namespace mtc::keras {

// Output `tensor` of the call `node` of layer number `layer`.
struct TensorRef {
  size_t layer = 0, node = 0, tensor = 0;
};

// What a layer is called with: a tensor, a list, a dictionary, which is a list with keys, or a constant.
struct Argument {
  enum class Kind { Tensor, List, Constant } kind = Kind::Constant;
  TensorRef tensor;
  std::vector<Argument> list;
  std::vector<std::string> keys; // none of a list
  const Json *constant = nullptr;
};

struct Call {
  std::vector<Argument> args;
  std::vector<std::pair<std::string, Argument>> kwargs;
};

// A variable of a layer, in the order in which Keras stores it.
struct LayerVariable {
  std::string name, path; // of the mt.variable; in the weights file
  mlir::Value value;
  bool trainable; // as the layer made it; a frozen layer's are still stored first
};

struct Graph;

struct Layer {
  std::string name, module, className;
  std::string inner;            // name of the layer that a TimeDistributed one holds, which stands in its place
  const Json *config = nullptr; // the layer's own
  bool frozen = false;          // the layer, or a model around it, has trainable = false
  std::string scope;            // before the names of its variables: "model/"
  std::string weights;          // its path in the weights file: "layers/dense_1"
  std::vector<Call> calls;
  std::unique_ptr<Graph> model;         // of a nested model
  unsigned streams = 0;                 // of random numbers: one for each call
  std::vector<LayerVariable> variables; // filled when the layer is first called
};

struct Graph {
  std::string name;
  std::vector<Layer> layers;  // in Keras' order
  std::vector<size_t> inputs; // InputLayers
  std::vector<TensorRef> outputs;
  // What calls, losses and metrics name them by: layers' names, or the keys of a dictionary. An output whose name is
  // taken has a number behind it.
  std::vector<std::string> inputNames, outputNames;
};

// From the object of a Sequential or Functional model. `json` must outlive the graph. Empty on success, else what is
// wrong.
std::string readGraph(const Json &json, Graph &graph);

} // namespace mtc::keras

#endif
