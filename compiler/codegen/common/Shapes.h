// SPDX-License-Identifier: Apache-2.0
//
// Types and sizes of values in the body of a kernel.
#ifndef COMPILER_CODEGEN_COMMON_SHAPES_H
#define COMPILER_CODEGEN_COMMON_SHAPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace mtc {

inline mlir::RankedTensorType tensorOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}
inline bool isSplit(mlir::Value value) { return tensorOf(value).getRank() > 0 && tensorOf(value).isDynamicDim(0); }
// Sizes of one row of a split value, or of the whole value.
llvm::ArrayRef<int64_t> innerShape(mlir::Value value);
int64_t innerCount(mlir::Value value);
// Number of rows of a matrix: elements of a sample (or of a value that is not split), divided by the size of the last
// axis.
int64_t linesOf(mlir::Value value);
inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline mlir::Type elementOf(mlir::Value value) { return tensorOf(value).getElementType(); }

} // namespace mtc

#endif
