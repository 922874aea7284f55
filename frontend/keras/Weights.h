// SPDX-License-Identifier: Apache-2.0
//
// The tensors of an archive as the values of a model's variables.
#ifndef FRONTEND_KERAS_WEIGHTS_H
#define FRONTEND_KERAS_WEIGHTS_H

#include "frontend/keras/Archive.h"
#include "frontend/keras/Graph.h"

#include "dialects/mt/MtDialect.h"

namespace mtc::keras {

// A tensor of Keras' file of weights.
struct FileVariable {
  mlir::Location location;
  std::string path; // in the file: "layers/dense/vars/0"
  std::string name; // of the variable; empty: Keras has it, and the model does without
  mlir::RankedTensorType type;
  std::string owner = {}; // of a slot: the variable that it belongs to
};

// All of them in Keras' order: the layers', then the optimizer's.
struct FileVariables {
  std::vector<FileVariable> layers, optimizer;
  size_t optimizerScalars; // what an optimizer has that has not made a step

  // The model does without the slots of these variables.
  void dropSlots(const std::vector<std::string> &frozen);
};
FileVariables listVariables(const Graph &graph, mlir::mt::ModelOp model);

// Fits every tensor of the archive to a variable of the graph or, with `optimizer`, to one of its slots, and takes it
// out of the archive. Missing, misshapen and superfluous tensors are errors at the layer. What is left is Keras' own:
// random state, counts.
llvm::LogicalResult matchWeights(Archive &archive, const FileVariables &variables, mlir::Location location,
                                 bool optimizer, std::vector<NamedTensor> &weights);

} // namespace mtc::keras

#endif
