// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dialects/mt/MtDialect.h"

namespace mtc {

// Rewrites a program so that grouping sees few forms: matmuls by a matrix without transposes but that of the right
// side (and of the left in sums over the batch), explicit transposes once each, no broadcast in front of an op that
// broadcasts by itself, no conditional assignment, an extending cast for each reader. With `images` convolutions may
// become steps of rows.
void prepareForFusion(mlir::mt::ProgramOp program, bool images);

// Whether a convolution's images are cheaper to compute than to store and load, and stay in a cache meanwhile
// (FirstLayers.cpp).
bool isThin(mlir::mt::Conv2DOp op);
// Bytes of a value that may lie in a thread's own memory: it stays in the second cache.
constexpr int64_t maxCachedBytes = 1 << 18;
// Of a sample's part of a value; 0 for a value without a batch axis (Lines.cpp).
int64_t bytesPerSample(mlir::Value value);
// Gradients of max pools compute the images of small-K convolutions again.
void repeatThinConvolutions(mlir::mt::ProgramOp program);
// Gradients of small kernels become sums of the gradients of each sample.
void splitKernelGradients(mlir::mt::ProgramOp program);

// The value of 16 bits that `value` is as f32 (docs/precision.md), or null. Every reader extends for itself.
mlir::Value extendedFrom(mlir::Value value);

// Of two matrices, or a convolution, forward or to its input.
bool isProduct(mlir::Operation *op);

// Whether two ops compute the same: equal but for extending casts of their own.
bool sameComputation(mlir::Operation *a, mlir::Operation *b);

// Products of blocks of classes get slices of their own, and their weight gradients places in one value
// (ClassBlocks.cpp).
void prepareBlocks(mlir::mt::ProgramOp program);

// A mask by the sign of a max pool's images, applied to its gradient, moves to the pool's result.
void masksBeforePools(mlir::mt::ProgramOp program);

} // namespace mtc
