// SPDX-License-Identifier: Apache-2.0
//
// The forward pass: evaluates a graph of layers, each call by its layer's builder.
#ifndef FRONTEND_KERAS_IMPORTER_H
#define FRONTEND_KERAS_IMPORTER_H

#include "frontend/keras/LayerBuilder.h"
#include "frontend/training/Training.h"

#include <map>

namespace mtc::keras {

using training::Output;

// What a layer returned.
struct Tensor {
  mlir::Value value, mask;
};

class Importer {
public:
  using Shapes = std::map<std::string, std::vector<int64_t>>;

  // `shapes` are of inputs that have axes of any size; "": of the only one.
  // `length` is the size of an axis of any size behind the batch axis; 0: not known.
  Importer(mlir::OpBuilder &builder, Graph &graph, bool hasWeights, const Shapes &shapes, int64_t length)
      : builder(builder), graph(graph), hasWeights(hasWeights), shapes(shapes), length(length) {}

  // Layers of classes that are not in the table: one error that lists them all.
  llvm::LogicalResult checkLayers();
  // Makes the inputs, and ops for every call. Errors are at the layers.
  llvm::LogicalResult run(std::vector<Output> &outputs);

private:
  using Results = std::vector<std::vector<llvm::SmallVector<Tensor>>>; // by layer, call, output

  llvm::LogicalResult evaluate(Graph &graph, llvm::ArrayRef<Tensor> inputs, llvm::SmallVectorImpl<Tensor> &outputs);
  llvm::LogicalResult evaluateCall(Layer &layer, const Call &call, const Results &results, Graph &graph,
                                   llvm::SmallVectorImpl<Tensor> &values);
  mlir::Value makeInput(const Layer &layer);
  // Behind the batch axis; an error at the config where one is missing or another is given.
  llvm::SmallVector<int64_t> readSizes(const Layer &layer, Config &config) const;
  llvm::LogicalResult checkShapes() const;
  Tensor find(const TensorRef &ref, const Results &results) const;
  Operand resolve(const Argument &argument, const Results &results) const;

  mlir::OpBuilder &builder;
  Graph &graph;
  bool hasWeights;
  const Shapes &shapes;
  int64_t length;
  size_t calls = 0;        // evaluated, over all nested models
  bool keepsMasks = false; // of tensors that Keras takes them from
};

} // namespace mtc::keras

#endif
