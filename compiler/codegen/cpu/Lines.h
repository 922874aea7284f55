// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_CODEGEN_CPU_LINES_H
#define COMPILER_CODEGEN_CPU_LINES_H

#include "compiler/codegen/common/Kernel.h"

namespace mtc {

// Elements [from, to) of every result of an element-wise body, all operands but the scalar ones indexed alike.
mlir::LogicalResult emitLine(Kernel &kernel, mlir::Value from, mlir::Value to,
                             llvm::function_ref<bool(mlir::Value)> isScalar);

// Chunks of elements [from, to), or [0, count), of a line. `each(index, mask)` is written twice: for whole vectors (no
// mask) in a loop, and for what is left.
void forChunks(Emitter &emit, mlir::Value from, mlir::Value to,
               llvm::function_ref<void(mlir::Value index, mlir::Value mask)> each);
void forChunks(Emitter &emit, int64_t count, llvm::function_ref<void(mlir::Value index, mlir::Value mask)> each);

} // namespace mtc

#endif
