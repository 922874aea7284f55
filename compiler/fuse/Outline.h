// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/fuse/FusionGraph.h"

namespace mtc {

// Replaces each group by one mt.kernel. Adds copies so that an assigned value is a result of an elementwise kernel
// without other uses, an output is a result of a kernel without other uses, and a reported scalar is a result of a
// kernel or of an all-reduce. `gpus`: a kernel of scalars makes the copy of a scalar, where one follows.
void outlineKernels(mlir::mt::ProgramOp program, const FusionGraph &graph, bool gpus);

// Drops results that their readers compute from other stored values: reshapes, negatives, and sums, differences and
// products with a constant.
void dropCheapResults(mlir::mt::ProgramOp program);

// Makes the streams of random numbers operands of their kernels, from constants between kernels. Kernels of equal
// layers are then equal, although each draws other numbers.
void passStreams(mlir::mt::ProgramOp program);

} // namespace mtc
