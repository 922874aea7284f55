// SPDX-License-Identifier: Apache-2.0
//
// Copies within one sample, row major.
#ifndef COMPILER_CODEGEN_CPU_COPY_H
#define COMPILER_CODEGEN_CPU_COPY_H

#include "compiler/codegen/common/Emitter.h"

namespace mtc {

// A box of elements with the given shape, and strides in elements on both sides. Strides of the source may be 0 or
// negative.
struct StridedCopy {
  llvm::SmallVector<int64_t> shape, from, to;
  bool operator==(const StridedCopy &) const = default;
};
void emitCopy(Emitter &emit, mlir::Type element, const StridedCopy &copy, mlir::Value from, mlir::Value to);
// Sets `count` elements at `to` to a scalar.
void emitFill(Emitter &emit, mlir::Type element, mlir::Value value, mlir::Value to, int64_t count);

} // namespace mtc

#endif
