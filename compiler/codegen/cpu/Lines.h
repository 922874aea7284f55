// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_CODEGEN_CPU_LINES_H
#define COMPILER_CODEGEN_CPU_LINES_H

#include "compiler/codegen/common/Kernel.h"

namespace mtc {

// Emits elements [from, to) of every result of an element-wise body. All operands but the scalar ones have the same
// index.
mlir::LogicalResult emitLine(Kernel &kernel, mlir::Value from, mlir::Value to,
                             llvm::function_ref<bool(mlir::Value)> isScalar);

// Calls `each(index, mask)` for chunks of elements [from, to), or [0, count), of a line: once for full vectors, without
// a mask, in a loop, and once for the rest.
void forChunks(Emitter &emit, mlir::Value from, mlir::Value to,
               llvm::function_ref<void(mlir::Value index, mlir::Value mask)> each);
void forChunks(Emitter &emit, int64_t count, llvm::function_ref<void(mlir::Value index, mlir::Value mask)> each);

} // namespace mtc

#endif
