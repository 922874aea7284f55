// SPDX-License-Identifier: Apache-2.0
#ifndef DIALECTS_MT_UPDATE_H
#define DIALECTS_MT_UPDATE_H

#include "dialects/mt/MtDialect.h"

namespace mlir::mt {

// Checks a model's mt.update against its variables, and that only a model with mt.update has slots and roles.
LogicalResult verifyUpdate(ModelOp model);

// Whether mt.update computes losses of its own: it reports them or differentiates them.
bool isWholeStep(ModelOp model);

} // namespace mlir::mt

#endif
