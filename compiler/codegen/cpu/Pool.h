// SPDX-License-Identifier: Apache-2.0
//
// Pools and their gradients. Pointers are to one sample, row major.
#ifndef COMPILER_CODEGEN_CPU_POOL_H
#define COMPILER_CODEGEN_CPU_POOL_H

#include "compiler/codegen/common/Kernel.h"

namespace mtc {

void emitPool(Emitter &emit, const mlir::mt::Pooling &pool, mlir::mt::Reduction kind, mlir::Type element, mlir::Value x,
              mlir::Value y);
// `x` is null for sum.
void emitPoolGradient(Emitter &emit, mlir::mt::PoolGradientOp op, mlir::Value dy, mlir::Value x, mlir::Value dx);

} // namespace mtc

#endif
