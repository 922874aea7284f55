// SPDX-License-Identifier: Apache-2.0
//
// The tensors of an archive as the values of a model's variables.
#ifndef FRONTEND_KERAS_WEIGHTS_H
#define FRONTEND_KERAS_WEIGHTS_H

#include "frontend/keras/Archive.h"
#include "frontend/keras/Graph.h"

#include "dialects/mt/MtDialect.h"

namespace mtc::keras {

// Fits every tensor of the archive to a variable of the graph or, with `optimizer`, to one of its slots. Missing, misshapen and
// superfluous tensors are errors at the layer.
llvm::LogicalResult matchWeights(Archive &archive, const Graph &graph, mlir::mt::ModelOp model, bool optimizer,
                                 std::vector<NamedTensor> &weights);

} // namespace mtc::keras

#endif
