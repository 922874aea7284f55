// SPDX-License-Identifier: Apache-2.0
//
// Copies inside one sample, row major.
#ifndef COMPILER_CODEGEN_CPU_COPY_H
#define COMPILER_CODEGEN_CPU_COPY_H

#include "compiler/codegen/common/Emitter.h"

namespace mtc {

// A box of elements: `shape`, and elements from one to the next along each axis on both sides. At the source a stride
// may be 0 or negative.
struct StridedCopy {
  llvm::SmallVector<int64_t> shape, from, to;
};
void emitCopy(Emitter &emit, mlir::Type element, const StridedCopy &copy, mlir::Value from, mlir::Value to);
// `count` elements at `to` become `value`, a scalar.
void emitFill(Emitter &emit, mlir::Type element, mlir::Value value, mlir::Value to, int64_t count);

} // namespace mtc

#endif
