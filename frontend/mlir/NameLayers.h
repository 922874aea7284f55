// SPDX-License-Identifier: Apache-2.0
//
// Layers of a model that came as text: reports tell of them, as they tell of a Keras model's.
#ifndef FRONTEND_MLIR_NAMELAYERS_H
#define FRONTEND_MLIR_NAMELAYERS_H

#include "mlir/IR/BuiltinOps.h"

namespace mtc {

// Gives ops of the module's models that have no named location (`loc("dense")`) the name of their layer, around the
// location they have: what comes before the last slash of the name of the variable they read, else the layer of their
// first operand. What only losses and metrics read is named as these; optimizers and ops of nobody as the op.
void nameLayers(mlir::ModuleOp module);

} // namespace mtc

#endif
