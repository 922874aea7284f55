// SPDX-License-Identifier: Apache-2.0
//
// What rows kernels do with the axes of a sample: pools and strided copies. Pointers are to one sample, row major.
#ifndef COMPILER_CODEGEN_CPU_POOL_H
#define COMPILER_CODEGEN_CPU_POOL_H

#include "compiler/codegen/common/Kernel.h"

namespace mtc {

void emitPool(Emitter &emit, const mlir::mt::Pooling &pool, mlir::mt::Reduction kind, mlir::Type element, mlir::Value x,
              mlir::Value y);
// `x` is null for sum.
void emitPoolGradient(Emitter &emit, mlir::mt::PoolGradientOp op, mlir::Value dy, mlir::Value x, mlir::Value dx);

// A box of elements: `shape`, and elements from one to the next along each axis on both sides (may be negative at the
// source).
struct Move {
  llvm::SmallVector<int64_t> shape, from, to;
};
void emitMove(Emitter &emit, mlir::Type element, const Move &move, mlir::Value from, mlir::Value to);
// `count` elements at `to` become `value`, a scalar.
void emitFill(Emitter &emit, mlir::Value value, mlir::Value to, int64_t count);

} // namespace mtc

#endif
