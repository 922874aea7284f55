// SPDX-License-Identifier: Apache-2.0
//
// The steps of one row (compiler/codegen/Rows.h), or of a kernel without rows, by the threads of a block.
#ifndef COMPILER_CODEGEN_GPU_BLOCKROWS_H
#define COMPILER_CODEGEN_GPU_BLOCKROWS_H

#include "compiler/codegen/Rows.h"
#include "compiler/codegen/gpu/Block.h"

namespace mtc {

class BlockRows {
public:
  explicit BlockRows(BlockKernel &kernel) : kernel(kernel), emit(kernel.emit) {}

  // Elements of a body value lie at `pointer`, row major.
  void bind(mlir::Value value, mlir::Value pointer) { places[value] = pointer; }
  // Results are wanted at these places, one a yield.
  void bindResults(llvm::ArrayRef<mlir::Value> pointers) { results.assign(pointers.begin(), pointers.end()); }
  // The row's index in the batch, i64; null outside rows.
  void setRow(mlir::Value globalRow) { row = globalRow; }
  // Writes code for the operations; with `store` also for the yields that no operation stored. Threads may go on before
  // others are done.
  mlir::LogicalResult run(llvm::ArrayRef<mlir::Operation *> operations, bool store);

private:
  BlockKernel &kernel;
  Emitter &emit;
  mlir::Value row;
  llvm::SmallVector<mlir::Value> results;
  llvm::DenseMap<mlir::Value, mlir::Value> places;  // values in memory
  llvm::DenseMap<mlir::Value, mlir::Value> scalars; // values of one element that every thread knows
  llvm::DenseMap<mlir::Value, int64_t> direct;      // values that steps write to a result

  // An element of a loop; in a step with a period `inner` is its place in it.
  struct Place {
    mlir::Value index, inner;
  };
  void allocate(llvm::ArrayRef<RowStep> steps, size_t at);
  mlir::Value scalarOf(mlir::Value value);
  mlir::Value placeOf(mlir::Value value);
  void define(mlir::Value value, mlir::Value scalar);

  mlir::LogicalResult runLoop(const RowStep &step);
  mlir::LogicalResult runElement(const RowStep &step, Place place, llvm::SmallVectorImpl<mlir::Value> &sums);
  Emitter::Values runPeriods(const RowStep &step, mlir::ValueRange sums, mlir::LogicalResult &status);
  mlir::Value sourceOf(const RowStep &step, Place place, mlir::Value value);
  mlir::Value elementOfIota(mlir::mt::IotaOp iota, mlir::Value index);
  // A sum of what each thread has, for all.
  Emitter::Values fold(llvm::ArrayRef<mlir::mt::ReduceOp> reductions, mlir::ValueRange sums);

  mlir::LogicalResult runMove(mlir::Operation *op);
  // Calls element(index, coordinates) for every element of op's result, and puts what it gives there.
  void forResult(mlir::Operation *op, llvm::function_ref<mlir::Value(mlir::Value index, mlir::ValueRange at)> element);
  mlir::Value loadAt(mlir::Value value, mlir::Value base, mlir::ValueRange at);
  bool runShape(mlir::Operation *op);
  bool runReduction(mlir::Operation *op);
  bool runWindow(mlir::Operation *op);
  bool runLookup(mlir::Operation *op);
  void pool(mlir::mt::PoolOp op);
  void poolGradient(mlir::mt::PoolGradientOp op);
};

} // namespace mtc

#endif
