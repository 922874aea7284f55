// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dialects/mt/MtDialect.h"

namespace mtc {

// Rewrites a program to the forms that fusion expects: a matmul has no transposed operand but the right one (and the
// left one in sums over the batch); each explicit transpose occurs once; no broadcast precedes an op that broadcasts by
// itself; no assignment is conditional; each reader has its own extending cast. With `images`, small convolutions may
// become statements of rows kernels.
void prepareForFusion(mlir::mt::ProgramOp program, bool images);

// Recomputes a small-K convolution for the gradient of the max pool that reads it.
void recomputeSmallConvolutions(mlir::mt::ProgramOp program);
// Replaces the gradient of a small kernel by per-sample gradients and their sum.
void splitKernelGradients(mlir::mt::ProgramOp program, bool images);

// Gives each product of a block of classes a slice of the matrix of its own, and writes its weight gradient into a part
// of one value (ClassBlocks.cpp).
void prepareBlocks(mlir::mt::ProgramOp program);

// Moves a mask (the gradient of relu) from the operand of a max pool, applied to its gradient, to the pool's result.
void masksBeforePools(mlir::mt::ProgramOp program);

} // namespace mtc
