// SPDX-License-Identifier: Apache-2.0
//
// The operations of one row (or of a whole kernel without rows) as straight-line statements. A statement is one loop
// over the linear elements of a row, into which element-wise operations and full sums are fused, or one operation that
// moves data. The statement of a convolution includes the element-wise operations on its result.
#ifndef COMPILER_CODEGEN_COMMON_STATEMENTS_H
#define COMPILER_CODEGEN_COMMON_STATEMENTS_H

#include "compiler/codegen/common/Kernel.h"

namespace mtc {

struct RowStatement {
  bool loop;     // a fused loop; else `operations` is one operation, or a convolution and its epilogue
  int64_t count; // iterations of the loop, in elements
  // number of elements after which operands that are broadcast along the loop, and sums over the first axes of the row,
  // repeat; 0: none
  int64_t period;
  llvm::SmallVector<mlir::Operation *> operations;
};

// Splits operations, in program order, into statements that run in order.
std::vector<RowStatement> splitStatements(llvm::ArrayRef<mlir::Operation *> operations);

// The value whose memory `value` uses. Reshapes, and broadcasts that do not move elements, have no memory of their own.
mlir::Value resolve(mlir::Value value);

// Number of elements after which a broadcast value repeats its operand; 0 for any other value. A loop reads the operand
// instead of the broadcast value.
int64_t periodOf(mlir::Value value);
// Number of elements of the result, if the op reduces the first axes of a row to more than one element; else 0.
int64_t leadingPeriod(mlir::Operation *op);

// Whether an operation outside of the statement reads `value`.
bool isReadOutside(const RowStatement &statement, mlir::Value value);
// Values that statements may write directly to the buffer of a result, with the number of the result. If the result is
// computed in place, the buffer is also that of an operand. Then no later statement may read the operand, and an
// operation of the same statement that moves data may not read it.
llvm::DenseMap<mlir::Value, int64_t> directResults(Kernel &kernel, llvm::ArrayRef<RowStatement> statements);
// Operations of a kernel's body whose results are split, or are not split.
llvm::SmallVector<mlir::Operation *> operationsOf(Kernel &kernel, bool split);
// Elements of a constant: a pointer to them, or the scalar of a constant with one element.
mlir::Value constantPointer(Emitter &emit, mlir::mt::ConstantOp constant);
mlir::Value constantScalar(Emitter &emit, mlir::mt::ConstantOp constant);

} // namespace mtc

#endif
