// SPDX-License-Identifier: Apache-2.0
//
// Matches the tensors of an archive with the variables of a model.
#ifndef FRONTEND_KERAS_WEIGHTS_H
#define FRONTEND_KERAS_WEIGHTS_H

#include "frontend/keras/Archive.h"
#include "frontend/keras/Graph.h"

#include "dialects/mt/MtDialect.h"

namespace mtc::keras {

// A tensor of Keras' weights file.
struct FileVariable {
  mlir::Location location;
  std::string path; // path in the file: "layers/dense/vars/0"
  std::string name; // name of the variable; empty: the model does not use the tensor
  mlir::RankedTensorType type;
  std::string owner = {}; // for a slot, the name of its variable
};

// All tensors in Keras' order: of the layers, then of the optimizer.
struct FileVariables {
  std::vector<FileVariable> layers, optimizer;
  size_t optimizerScalars; // number of variables of an optimizer that has not made a step

  // Marks the slots of these variables as unused.
  void dropSlots(const std::vector<std::string> &frozen);
};
FileVariables listVariables(const Graph &graph, mlir::mt::ModelOp model);

// Matches every tensor of the archive with a variable of the graph or, with `optimizer`, with a variable of the
// optimizer, and removes it from the archive. Missing, misshapen and superfluous tensors are errors at the layer.
// Keras' own tensors (random state, counts) stay.
llvm::LogicalResult matchWeights(Archive &archive, const FileVariables &variables, mlir::Location location,
                                 bool optimizer, std::vector<NamedTensor> &weights);

} // namespace mtc::keras

#endif
