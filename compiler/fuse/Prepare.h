// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dialects/mt/MtDialect.h"

namespace mtc {

// Rewrites a program so that grouping sees few forms: matmuls by a matrix without transposes but that of the right
// side (and of the left in sums over the batch), explicit transposes once each, no broadcast in front of an op that
// broadcasts by itself, no conditional assignment.
void prepareForFusion(mlir::mt::ProgramOp program);

// A mask by the sign of a max pool's images, applied to its gradient, moves to the pool's result.
void masksBeforePools(mlir::mt::ProgramOp program);

} // namespace mtc
