// SPDX-License-Identifier: Apache-2.0
//
// Emits the statements of one row (compiler/codegen/common/Statements.h), or of a kernel without rows, for the threads
// of a block.
#ifndef COMPILER_CODEGEN_GPU_BLOCKROWS_H
#define COMPILER_CODEGEN_GPU_BLOCKROWS_H

#include "compiler/codegen/common/Statements.h"
#include "compiler/codegen/gpu/Elements.h"

namespace mtc {

class BlockRows : public BlockElements {
public:
  using BlockElements::BlockElements;

  // Sets the addresses of the results, one per yield.
  void bindResults(llvm::ArrayRef<mlir::Value> pointers) { results.assign(pointers.begin(), pointers.end()); }
  // Restricts the block to `count` columns from `first` on (columnsOf).
  void setColumns(mlir::Value first, int64_t count) {
    firstColumn = first;
    columnsOfBlock = count;
  }
  // Emits code for the operations; with `store` also for the yields that no operation stored. There is no barrier at
  // the end.
  mlir::LogicalResult run(llvm::ArrayRef<mlir::Operation *> operations, bool store);

private:
  mlir::Value firstColumn; // null: all columns
  int64_t columnsOfBlock = 0;
  llvm::SmallVector<mlir::Value> results;
  llvm::DenseMap<mlir::Value, mlir::Value> targets; // addresses to which statements store their values
  // values that statements store to a result, with the number of the result
  llvm::DenseMap<mlir::Value, int64_t> direct;
  llvm::DenseSet<mlir::Value> computed; // values without memory, which are computed where they are read

  void chooseComputed(llvm::ArrayRef<RowStatement> statements);
  void allocate(const RowStatement &statement);
  // Whether a statement has values that are not `computed`.
  bool hasWork(const RowStatement &statement);
  mlir::Value scalarOf(mlir::Value value) { return at(value, emit.integer(0)); }
  void define(mlir::Value value, mlir::Value scalar);

  void runLoop(const RowStatement &statement);
  void runElement(const RowStatement &statement, Position position, llvm::MutableArrayRef<mlir::Value> sums,
                  llvm::SmallVectorImpl<BlockStore> &stores);
  Emitter::Values runElements(const RowStatement &statement, mlir::ValueRange sums);
  Emitter::Values runInner(const RowStatement &statement, mlir::Value inner, mlir::Value first, int64_t stride,
                           mlir::ValueRange sums, llvm::function_ref<void(mlir::mt::ReduceOp, mlir::Value)> finish);
  Emitter::Values runPeriods(const RowStatement &statement, mlir::ValueRange sums);
  // For a block that computes some columns (Columns.cpp).
  void runColumns(const RowStatement &statement);
  Emitter::Values runPixels(const RowStatement &statement, mlir::Value inner, const Spread &spread, mlir::Value pixel,
                            int64_t count, int64_t distance, mlir::ValueRange sums);
  void foldColumns(llvm::ArrayRef<mlir::mt::ReduceOp> reductions, mlir::Value inner, int64_t groups,
                   mlir::ValueRange sums);
  // Reduces the values of all threads (Fold.cpp). `combine` combines the values of two threads; the first argument
  // belongs to the thread with the lower number.
  using Combine = llvm::function_ref<Emitter::Values(mlir::ValueRange low, mlir::ValueRange high)>;
  Emitter::Values fold(mlir::ValueRange values, Combine combine);
  Emitter::Values foldLanes(mlir::ValueRange values, int64_t lanes, Combine combine);
  Emitter::Values fold(llvm::ArrayRef<mlir::mt::ReduceOp> reductions, mlir::ValueRange sums);
  // Index of the largest element.
  mlir::Value search(mlir::mt::ArgmaxOp op);
  void runMove(mlir::Operation *op);
};

} // namespace mtc

#endif
