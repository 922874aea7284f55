// SPDX-License-Identifier: Apache-2.0
//
// The graph of an ONNX model as ops of `mt`: inputs, variables, and ops for every node.
#ifndef FRONTEND_ONNX_IMPORTER_H
#define FRONTEND_ONNX_IMPORTER_H

#include "frontend/NamedTensor.h"
#include "frontend/onnx/Call.h"
#include "frontend/onnx/Variables.h"
#include "frontend/training/Training.h"

namespace mtc::onnx {

// An exporter's name "/features/features.0/Conv" is that of the layer "features/features.0".
std::string layerOf(const Node &node);
// A node as errors name it: by its own name, or by the first value that it makes.
std::string described(const Node &node);

constexpr int64_t maxBodyNodes = 500000; // in bodies of loops; steps count as nodes

class Importer {
public:
  using Shapes = std::map<std::string, std::vector<int64_t>>;

  // `shapes` are of inputs that have axes of any size; "": of the only one.
  // `length` is the size of an axis of any size behind the batch axis; 0: not known.
  // `freezesBatchNorm`: batch normalization computes as in prediction.
  Importer(mlir::OpBuilder &builder, Model &model, const Shapes &shapes, int64_t length, bool freezesBatchNorm)
      : builder(builder), model(model), shapes(shapes), length(length), freezesBatchNorm(freezesBatchNorm) {}

  // Makes the ops. Errors are at the nodes. `weights` receives the values of the variables.
  llvm::LogicalResult run(std::vector<training::Output> &outputs, std::vector<NamedTensor> &weights);

private:
  void findNeeded();
  llvm::LogicalResult checkOps();
  void sayHowExported() const;
  void sayWhatIsTrained() const;
  llvm::LogicalResult makeInputs();
  llvm::LogicalResult makeInput(const Port &port, const std::vector<int64_t> *requested);
  llvm::LogicalResult makeInitializers(std::vector<NamedTensor> &weights);
  Operand makeVariable(Tensor &tensor, std::vector<NamedTensor> &weights);
  llvm::LogicalResult evaluate(const Node &node);
  // The results of a node; what is wrong with it, or nothing.
  std::string build(const Node &node, std::vector<Operand> inputs, std::vector<Operand> &results);
  // If, Loop and Scan have graphs, which are evaluated in place of the node (Control.cpp).
  llvm::LogicalResult evaluateControl(const Node &node);
  std::vector<Operand> evaluateIf(const Node &node);
  std::vector<Operand> evaluateLoop(const Node &node);
  std::vector<Operand> evaluateScan(const Node &node);
  // A loop: the values that go from step to step, the inputs that are cut into parts for the steps, and the order in
  // which each output is put together.
  struct Steps {
    int64_t count;
    std::vector<Operand> carried;
    std::vector<std::pair<logical::Value, logical::Loop::Order>> inputs = {}; // along the first axis
    std::vector<logical::Loop::Order> outputs;
    bool counts = false; // of a Loop, whose graph has the number of the step and a condition in front
  };
  // A loop as one mt.scan: the carries and the outputs of all steps along a first axis. None: mt.scan cannot have it.
  std::optional<std::vector<Operand>> buildLoop(const Node &node, Steps &steps);
  std::vector<Operand> evaluateBody(const Graph &body, llvm::ArrayRef<Operand> inputs, const std::string &name);
  const Operand &operandOf(const Node &node, size_t index);
  llvm::LogicalResult makeOutputs(std::vector<training::Output> &outputs);
  mlir::Location locationOf(const Node &node) const;

  mlir::OpBuilder &builder;
  Model &model;
  const Shapes &shapes;
  int64_t length;
  bool freezesBatchNorm;
  int64_t fixedBatch = 0; // as of Call
  bool hasSumOverBatch = false;
  struct Trained {
    int64_t count = 0, numbers = 0;
    std::vector<std::string> others; // that no layer has, with what reads them
  } trained;
  logical::Loop *built = nullptr; // the innermost loop whose graph is evaluated once
  std::string scope;              // of nodes in a body: which step of which loop
  int64_t bodyNodes = 0;          // that were evaluated in bodies, of all steps
  int64_t knownElements = 0;      // that were computed here, of all nodes
  int64_t budget = logical::Ops::maxBudget;
  std::vector<const Node *> needed;             // in the order of the file
  std::map<std::string, std::vector<Use>> uses; // of a name
  std::map<std::string, Operand> values;        // an operand that is nothing: its node was refused
};

} // namespace mtc::onnx

#endif
