// SPDX-License-Identifier: Apache-2.0
//
// The layers of a model as a table like Keras' summary(), with their costs.
#ifndef COMPILER_INSPECT_MODELTABLE_H
#define COMPILER_INSPECT_MODELTABLE_H

#include "dialects/mt/MtDialect.h"

#include <string>

namespace mtc {

// Returns a line per layer, in the order of the model: name, kind (the op with the most FLOPs), shape of the result,
// parameters, and for the forward pass of one sample the FLOPs and the bytes of all results before fusion. The last
// lines are totals. A layer is a named location. Losses and metrics are not counted.
std::string modelTable(mlir::mt::ModelOp model);

} // namespace mtc

#endif
