// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dialects/mt/MtDialect.h"

namespace mtc {

// Rewrites a program so that grouping sees few forms: matmuls by a matrix without transposes but that of the right
// side (and of the left in sums over the batch), explicit transposes once each, no broadcast in front of an op that
// broadcasts by itself, no conditional assignment, an extending cast for each reader. With `images` convolutions may
// become steps of rows.
void prepareForFusion(mlir::mt::ProgramOp program, bool images);

// Gradients of max pools compute the images of small-K convolutions again.
void repeatThinConvolutions(mlir::mt::ProgramOp program);
// Gradients of small kernels become sums of the gradients of each sample.
void splitKernelGradients(mlir::mt::ProgramOp program);

// Products of blocks of classes get slices of their own, and their weight gradients places in one value
// (ClassBlocks.cpp).
void prepareBlocks(mlir::mt::ProgramOp program);

// A mask by the sign of a max pool's images, applied to its gradient, moves to the pool's result.
void masksBeforePools(mlir::mt::ProgramOp program);

} // namespace mtc
