// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_CODEGEN_CPU_WHOLETREE_H
#define COMPILER_CODEGEN_CPU_WHOLETREE_H

#include "compiler/codegen/cpu/Terms.h"

namespace mtc {

// The function for tiles of `rows` rows, one below the other, that sums a tree of 2^height full shards of `size`
// samples, or pairs of samples, each: (a, stride, packed, to, step, tiles, slots). `stride` and `step` are the strides
// of the rows of a and of the result, in floats; `slots` has room for `height` tiles. The result is the sum over
// samples of a's columns times the packed rows.
mlir::LLVM::LLVMFuncOp wholeTreeFunction(Emitter &emit, Terms terms, int64_t rows, int64_t vectors, int64_t height,
                                         int64_t size);
// The function for tiles of `rows` rows, one below the other: (a, stride, packed, samples, size, count, first, all,
// stack, to, step, tiles). It sums shards [first, first + count) of `all` shards, each of `size` samples, floats or
// pairs; the last one may be shorter. `stride` and `step` are the strides of the rows of a and of the result, in
// floats. Nodes up to `inner` levels above the shards stay in registers; `first` is a multiple of their number of
// shards.
mlir::LLVM::LLVMFuncOp treeFunction(Emitter &emit, Terms terms, int64_t rows, int64_t vectors, int64_t levels,
                                    int64_t inner);

// Stores the sums of a tile, with a stride of `step` floats.
void storeTile(Emitter &emit, mlir::ValueRange sums, mlir::Value to, mlir::Value step, int64_t vectors);

} // namespace mtc

#endif
