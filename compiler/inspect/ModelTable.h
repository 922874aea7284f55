// SPDX-License-Identifier: Apache-2.0
//
// A model as Keras' summary shows it, with the cost of its layers.
#ifndef COMPILER_INSPECT_MODELTABLE_H
#define COMPILER_INSPECT_MODELTABLE_H

#include "dialects/mt/MtDialect.h"

#include <string>

namespace mtc {

// A line a layer, in the order of the model: its name and kind (the op with the most FLOPs), the shape of its result,
// its parameters; FLOPs and bytes of values of the forward pass of one sample, every op's result counted, before any
// fusion. Then the totals. Layers are named locations. Losses and metrics are left out.
std::string modelTable(mlir::mt::ModelOp model);

} // namespace mtc

#endif
