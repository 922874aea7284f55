// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_DIFFERENTIATE_LIMITS_H
#define COMPILER_DIFFERENTIATE_LIMITS_H

#include "dialects/mt/MtDialect.h"

namespace mtc {

// Gives every input and target whose numbers pick rows of a table or classes its `limit`, the smallest where several
// ops pick by them.
void setLimits(mlir::mt::ModelOp model);

} // namespace mtc

#endif
