// SPDX-License-Identifier: Apache-2.0
//
// Names of layers for models from text, so that reports list layers as they do for Keras models.
#ifndef FRONTEND_MLIR_NAMELAYERS_H
#define FRONTEND_MLIR_NAMELAYERS_H

#include "mlir/IR/BuiltinOps.h"

namespace mtc {

// Names the layer of each op that has no named location (`loc("dense")`), around its location: the part before the last
// slash of the name of the variable that the op reads, or else the layer of its first operand. An op that only a loss
// or metric reads gets the name of the loss or metric. Optimizers, and ops without a layer, get the name of the op.
void nameLayers(mlir::ModuleOp module);

// Leaves the names of layers alone as locations, without files and lines: equal models become equal texts.
void dropLines(mlir::ModuleOp module);

} // namespace mtc

#endif
