// SPDX-License-Identifier: Apache-2.0
//
// Builds the forward pass: evaluates a graph of layers, each call by the builder of its layer.
#ifndef FRONTEND_KERAS_IMPORTER_H
#define FRONTEND_KERAS_IMPORTER_H

#include "frontend/keras/LayerBuilder.h"
#include "frontend/training/Training.h"

#include <map>

namespace mtc::keras {

using training::Output;

// A result of a layer.
struct Tensor {
  mlir::Value value, mask;
};

class Importer {
public:
  using Shapes = std::map<std::string, std::vector<int64_t>>;

  // `shapes` are the shapes of inputs with axes of unknown size; "": of the only input. `length` is the size of an
  // unknown second axis; 0: unknown.
  Importer(mlir::OpBuilder &builder, Graph &graph, bool hasWeights, const Shapes &shapes, int64_t length)
      : builder(builder), graph(graph), hasWeights(hasWeights), shapes(shapes), length(length) {}

  // Emits one error that lists all layers whose classes are not in the table.
  llvm::LogicalResult checkLayers();
  // Builds the inputs, and ops for every call. Errors are emitted at the layers.
  llvm::LogicalResult run(std::vector<Output> &outputs);

private:
  using Results = std::vector<std::vector<llvm::SmallVector<Tensor>>>; // by layer, call and output

  llvm::LogicalResult evaluate(Graph &graph, llvm::ArrayRef<Tensor> inputs, llvm::SmallVectorImpl<Tensor> &outputs);
  llvm::LogicalResult evaluateCall(Layer &layer, const Call &call, const Results &results, Graph &graph,
                                   llvm::SmallVectorImpl<Tensor> &values);
  mlir::Value makeInput(const Layer &layer);
  // Sizes of the axes after the batch axis. Emits an error at the config if a size is missing or differs from the
  // option.
  llvm::SmallVector<int64_t> readSizes(const Layer &layer, Config &config) const;
  llvm::LogicalResult checkShapes() const;
  Tensor find(const TensorRef &ref, const Results &results) const;
  Operand resolve(const Argument &argument, const Results &results) const;

  mlir::OpBuilder &builder;
  Graph &graph;
  bool hasWeights;
  const Shapes &shapes;
  int64_t length;
  size_t calls = 0;        // evaluated calls, over all nested models
  bool keepsMasks = false; // tensors keep the masks that Keras attaches to them
};

} // namespace mtc::keras

#endif
