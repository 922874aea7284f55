// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/fuse/FusionGraph.h"

namespace mtc {

// Replaces each group by one mt.kernel. Adds copies where needed, so that: an assigned value is a result of an
// elementwise kernel that nothing else uses; an output is a result of a kernel that nothing else uses; a reported
// scalar is a result of a kernel or of an all-reduce.
void outlineKernels(mlir::mt::ProgramOp program, const FusionGraph &graph);

// Makes the streams of random numbers operands of their kernels, constants between kernels: equal layers have equal
// kernels then, although each draws numbers of its own.
void passStreams(mlir::mt::ProgramOp program);

} // namespace mtc
