// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_DIFFERENTIATE_LIMITS_H
#define COMPILER_DIFFERENTIATE_LIMITS_H

#include "dialects/mt/MtDialect.h"

namespace mtc {

// Sets `limit` of every input and target whose values are ids: the number of rows or classes that the ids select from,
// or the smallest number if several ops read the ids.
void setLimits(mlir::mt::ModelOp model);

} // namespace mtc

#endif
