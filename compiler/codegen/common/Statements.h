// SPDX-License-Identifier: Apache-2.0
//
// The operations of one row (or of a whole kernel without rows) as straight-line statements. A statement is either one
// loop over the flat elements of a row, in which element-wise operations and full sums are fused, or one operation that
// moves data; a convolution has element-wise operations on its result beside it.
#ifndef COMPILER_CODEGEN_COMMON_STEPS_H
#define COMPILER_CODEGEN_COMMON_STEPS_H

#include "compiler/codegen/common/Kernel.h"

namespace mtc {

struct RowStatement {
  bool loop;      // fused; else `operations` is one, or a convolution and what follows it
  int64_t count;  // elements of the loop
  int64_t period; // of operands that repeat along the loop, and of sums over its first axes; 0: none
  llvm::SmallVector<mlir::Operation *> operations;
};

// Splits operations, in program order, into statements that run in order.
std::vector<RowStatement> splitStatements(llvm::ArrayRef<mlir::Operation *> operations);

// The value whose memory `value` is: reshapes and broadcasts that move nothing have none of their own.
mlir::Value resolve(mlir::Value value);

// A value that repeats its operand, of this many elements, from first to last; 0 for any other. Loops read it where it
// is used.
int64_t periodOf(mlir::Value value);
// Elements of the result of a reduction over the first axes of a row, more than one; 0 for any other.
int64_t leadingPeriod(mlir::Operation *op);

// Whether an operation outside of the statement reads `value`.
bool isReadOutside(const RowStatement &statement, mlir::Value value);
// Values that statements may write to a result's buffer, and which result's. With an update in place the buffer is an
// operand's: so no later statement reads an operand, or in kernels of rows one that the result may be written over, and
// no operation that moves data reads one in the same statement.
llvm::DenseMap<mlir::Value, int64_t> directResults(Kernel &kernel, llvm::ArrayRef<RowStatement> statements);
// Operations of a kernel's body whose result has rows, or has none.
llvm::SmallVector<mlir::Operation *> operationsOf(Kernel &kernel, bool split);
// A constant's elements, in memory of their own or (of one element) as a scalar.
mlir::Value constantPointer(Emitter &emit, mlir::mt::ConstantOp constant);
mlir::Value constantScalar(Emitter &emit, mlir::mt::ConstantOp constant);

} // namespace mtc

#endif
