// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dialects/mt/MtDialect.h"

namespace mtc {

// Rewrites a program to the form that fusion expects. Only the right operand of a matmul is transposed (and the left
// operand in sums over the batch). Each explicit transpose occurs once. No broadcast precedes an op that broadcasts by
// itself. No assignment is conditional. Each reader has an extending cast of its own. With `images`, small convolutions
// may become statements of rows kernels. `gpusAlone`: the plan has no code for CPUs.
void prepareForFusion(mlir::mt::ProgramOp program, bool images, bool gpusAlone);

// Recomputes a convolution of few taps times channels for the gradient of the max pool that reads it.
void recomputeSmallConvolutions(mlir::mt::ProgramOp program);
// Replaces the gradient of a small kernel by per-sample gradients and their sum.
void splitKernelGradients(mlir::mt::ProgramOp program, bool images);

// Gives each product of a block of classes a slice of the matrix of its own, and writes the weight gradient of each
// block into its part of one value (ClassBlocks.cpp).
void prepareBlocks(mlir::mt::ProgramOp program);

// If the operand of a max pool is a relu, moves the mask of the relu's gradient from the pool's operand to the pool's
// result.
void masksBeforePools(mlir::mt::ProgramOp program);

} // namespace mtc
