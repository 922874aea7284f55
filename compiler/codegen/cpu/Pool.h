// SPDX-License-Identifier: Apache-2.0
//
// Pools and their gradients. Pointers are to one sample, row major.
#ifndef COMPILER_CODEGEN_CPU_POOL_H
#define COMPILER_CODEGEN_CPU_POOL_H

#include "compiler/codegen/common/Kernel.h"

namespace mtc {

void emitWindows(Emitter &emit, mlir::mt::WindowOpInterface op, mlir::Value x, mlir::Value y);
// Emits the gradient dx of a pooling. `x` is the input of a max pooling, and null for an average pooling.
void emitWindowGradient(Emitter &emit, mlir::mt::WindowGradientOpInterface op, mlir::Value dy, mlir::Value x,
                        mlir::Value dx);

} // namespace mtc

#endif
