// SPDX-License-Identifier: Apache-2.0
//
// The operations of one row (or of a whole kernel without rows) as straight-line statements. A statement is either one
// loop over the flat elements of a row, in which element-wise operations and full sums are fused, or one operation that
// moves data. A convolution includes the element-wise operations on its result.
#ifndef COMPILER_CODEGEN_COMMON_STATEMENTS_H
#define COMPILER_CODEGEN_COMMON_STATEMENTS_H

#include "compiler/codegen/common/Kernel.h"

namespace mtc {

struct RowStatement {
  bool loop;      // one fused loop; else `operations` is one operation, or a convolution and its epilogue
  int64_t count;  // iterations of the loop, in elements
  int64_t period; // elements after which operands that are broadcast along the loop repeat, and sums over the first
                  // axes of the row too; 0: there are none
  llvm::SmallVector<mlir::Operation *> operations;
};

// Splits operations, in program order, into statements that run in order.
std::vector<RowStatement> splitStatements(llvm::ArrayRef<mlir::Operation *> operations);

// The value whose memory `value` uses. Reshapes and broadcasts that move nothing have no memory of their own.
mlir::Value resolve(mlir::Value value);

// The number of elements after which a broadcast value repeats its operand; 0 for any other value. A loop reads the
// operand instead of a broadcast value.
int64_t periodOf(mlir::Value value);
// The number of elements of the result, if this is a reduction over the first axes of a row to more than one element;
// else 0.
int64_t leadingPeriod(mlir::Operation *op);

// Whether an operation outside of the statement reads `value`.
bool isReadOutside(const RowStatement &statement, mlir::Value value);
// The values that statements may write directly to a result's buffer, with the number of the result. That buffer may be
// an operand's too, if the result is written in place. So no later statement may read such an operand, and an operation
// that moves data may not read it in the same statement.
llvm::DenseMap<mlir::Value, int64_t> directResults(Kernel &kernel, llvm::ArrayRef<RowStatement> statements);
// Operations of a kernel's body whose result has rows, or has none.
llvm::SmallVector<mlir::Operation *> operationsOf(Kernel &kernel, bool split);
// The elements of a constant: a pointer to them, or the scalar of a constant of one element.
mlir::Value constantPointer(Emitter &emit, mlir::mt::ConstantOp constant);
mlir::Value constantScalar(Emitter &emit, mlir::mt::ConstantOp constant);

} // namespace mtc

#endif
