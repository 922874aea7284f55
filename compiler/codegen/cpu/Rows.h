// SPDX-License-Identifier: Apache-2.0
//
// Writes the statements of one row (common/Statements.h), of kernels of kind rows and single.
#ifndef COMPILER_CODEGEN_CPU_ROWS_H
#define COMPILER_CODEGEN_CPU_ROWS_H

#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/common/Statements.h"
#include <memory>

namespace mtc {

class ConvEmitter;

class RowEmitter {
public:
  explicit RowEmitter(Kernel &kernel);
  ~RowEmitter();

  // Elements of a body value lie at `pointer`, row major.
  void bind(mlir::Value value, mlir::Value pointer) { pointers[value] = pointer; }
  // Results are wanted at these addresses, one per yield.
  void bindResults(llvm::ArrayRef<mlir::Value> pointers) { results.assign(pointers.begin(), pointers.end()); }
  // The row's index in the batch, i64; null outside rows.
  void setRow(mlir::Value globalRow) { row = globalRow; }
  // Writes what comes before the first row for those of the operations that need it.
  mlir::LogicalResult prepare(llvm::ArrayRef<mlir::Operation *> operations);
  // Writes code for the operations; with `store` also for the yields that no operation stored.
  mlir::LogicalResult run(llvm::ArrayRef<mlir::Operation *> operations, bool store);

private:
  Kernel &kernel;
  Emitter &emit;
  mlir::Value row;
  llvm::SmallVector<mlir::Value> results;
  llvm::DenseMap<mlir::Value, mlir::Value> pointers; // values in memory
  llvm::DenseMap<mlir::Value, mlir::Value> scalars;  // values of one element that are known
  llvm::DenseMap<mlir::Value, mlir::Value> splats;   // values of one element, in the lanes of the loop being written

  static constexpr int64_t scratchLimit = maxTemporaryBytes;
  int64_t temporaries = 0; // bytes
  mlir::LogicalResult tooLarge();

  // Values that statements write to a result directly.
  llvm::DenseMap<mlir::Value, int64_t> direct;
  void allocate(llvm::ArrayRef<RowStatement> statements, size_t at);

  mlir::Value scalarOf(mlir::Value value);
  mlir::Value pointerOf(mlir::Value value);
  void define(mlir::Value value, mlir::Value scalar);

  // Sixteen elements of a loop, the last ones perhaps masked; in a statement with a period `inner` is the index in it
  // and `pixel` its number.
  struct Chunk {
    mlir::Value index, mask, inner, pixel;
    bool scalar;
  };
  mlir::LogicalResult runLoop(const RowStatement &statement);
  mlir::LogicalResult runChunk(const RowStatement &statement, const Chunk &chunk,
                               llvm::SmallVectorImpl<mlir::Value> &sums);
  mlir::Value sourceOf(const RowStatement &statement, const Chunk &chunk, mlir::Value value);
  mlir::Value lanesOf(mlir::mt::IotaOp iota, const Chunk &chunk);
  mlir::LogicalResult runPeriods(const RowStatement &statement, llvm::SmallVectorImpl<mlir::Value> &sums);
  // Sums over the first axes: sixteen lines of partial ones in memory (BroadcastPeriods.cpp).
  llvm::DenseMap<mlir::Operation *, mlir::Value> lines;
  void beginLines(const RowStatement &statement);
  void addToLines(mlir::mt::ReduceOp op, const Chunk &chunk, mlir::Value value);
  void endLines(const RowStatement &statement);
  mlir::LogicalResult runMove(mlir::Operation *op);
  // Convolutions (RowProduct.cpp).
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<ConvEmitter>> convolutions;
  mlir::LogicalResult runConvolution(const RowStatement &statement);
  mlir::Value reduceLine(mlir::mt::Reduction kind, mlir::Type element, mlir::Value pointer, int64_t count);
  // Where a value lies as f32: a copy of one of bf16 or f16.
  mlir::Value floatsOf(mlir::Value value);
  // What moves elements (Copy.cpp).
  void copyBoxes(mlir::mt::MoveOpInterface op);
  void lookUp(mlir::mt::LookupOpInterface op);
  void reduce(mlir::mt::ReduceOp op);
  void argmax(mlir::mt::ArgmaxOp op);
  void matmul(mlir::mt::MatmulOp op);
  void copyLine(mlir::Value value, mlir::Value to);
};

} // namespace mtc

#endif
