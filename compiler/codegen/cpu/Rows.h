// SPDX-License-Identifier: Apache-2.0
//
// Emits the statements of one row (common/Statements.h), for kernels of kind rows and single.
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

  // Sets the address of the elements of a value, row major.
  void bind(mlir::Value value, mlir::Value pointer) { pointers[value] = pointer; }
  // Sets the addresses of the results, one per yield.
  void bindResults(llvm::ArrayRef<mlir::Value> pointers) { results.assign(pointers.begin(), pointers.end()); }
  // Sets the index of the row in the batch, i64; null outside of rows. `inBuffers`: its index in the buffers of split
  // arguments and results, where it is the same in all of them; else null.
  void setRow(mlir::Value globalRow, mlir::Value inBuffers) {
    row = globalRow;
    bufferRow = inBuffers;
  }
  // Emits code before the first row, for operations that need it.
  mlir::LogicalResult prepare(llvm::ArrayRef<mlir::Operation *> operations);
  // Emits code for the operations; with `store` also for the yields that no operation stored.
  mlir::LogicalResult run(llvm::ArrayRef<mlir::Operation *> operations, bool store);

private:
  Kernel &kernel;
  Emitter &emit;
  mlir::Value row, bufferRow;
  llvm::SmallVector<mlir::Value> results;
  llvm::DenseMap<mlir::Value, mlir::Value> pointers; // addresses of values in memory
  llvm::DenseMap<mlir::Value, mlir::Value> scalars;  // known values of one element
  llvm::DenseMap<mlir::Value, mlir::Value> splats;   // values of one element, as vectors of the loop under construction

  static constexpr int64_t scratchLimit = maxTemporaryBytes;
  int64_t temporaries = 0; // in bytes
  mlir::LogicalResult tooLarge();

  // Values that statements store to a result directly.
  llvm::DenseMap<mlir::Value, int64_t> direct;
  void allocate(llvm::ArrayRef<RowStatement> statements, size_t at);

  mlir::Value scalarOf(mlir::Value value);
  mlir::Value pointerOf(mlir::Value value);
  void define(mlir::Value value, mlir::Value scalar);

  // Registers that the pixels of a chunk share: operands that repeat, and partial sums of sums over the pixels.
  struct Held {
    llvm::DenseMap<mlir::Value, mlir::Value> operands;
    llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>> sums;
    int64_t pixel = 0;
  };
  // 16 elements of a loop, possibly masked at the end. In a statement with a period, `inner` is the index within the
  // period and `pixel` the number of the period. `held`: null where pixels share memory.
  struct Chunk {
    mlir::Value index, mask, inner, pixel;
    bool scalar;
    Held *held = nullptr;
  };
  void forTail(const RowStatement &statement, int64_t count, llvm::function_ref<void(mlir::Value mask)> body);
  mlir::LogicalResult runLoop(const RowStatement &statement);
  mlir::LogicalResult runChunk(const RowStatement &statement, const Chunk &chunk,
                               llvm::SmallVectorImpl<mlir::Value> &sums);
  mlir::Value sourceOf(const RowStatement &statement, const Chunk &chunk, mlir::Value value);
  mlir::Value lanesOf(mlir::mt::IotaOp iota, const Chunk &chunk);
  mlir::LogicalResult runPeriods(const RowStatement &statement, llvm::SmallVectorImpl<mlir::Value> &sums);
  mlir::LogicalResult runPixels(const RowStatement &statement);
  // Sums over the first axes: 16 partial sums in memory (BroadcastPeriods.cpp).
  llvm::DenseMap<mlir::Operation *, mlir::Value> lines;
  void beginLines(const RowStatement &statement);
  void addToLines(mlir::mt::ReduceOp op, const Chunk &chunk, mlir::Value value);
  void endLines(const RowStatement &statement);
  mlir::LogicalResult runMove(mlir::Operation *op);
  // Convolutions (RowConvolution.cpp).
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<ConvEmitter>> convolutions;
  mlir::LogicalResult runConvolution(const RowStatement &statement);
  mlir::Value reduceLine(mlir::mt::Reduction kind, mlir::Type element, mlir::Value pointer, int64_t count);
  // Address of a value as f32; a value of bf16 or f16 is copied.
  mlir::Value floatsOf(mlir::Value value);
  // Operations that move elements (Copy.cpp).
  void copyBoxes(mlir::mt::MoveOpInterface op);
  // Many equal copies, such as of all steps of a sequence, become one loop over the kernel's table of buffers: the
  // code, and the time to compile it, do not grow with their number. Each function emits the copies from the first one
  // on that are equal, and returns how many these are; 0: too few for a loop.
  size_t copyFromBuffers(llvm::ArrayRef<mlir::mt::Move> boxes, llvm::ArrayRef<int64_t> strides, mlir::Value to);
  size_t copyToBuffers(llvm::ArrayRef<RowStatement> statements);
  mlir::Value inBuffer(mlir::Value index, int64_t first, mlir::Value like);
  void lookUp(mlir::mt::LookupOpInterface op);
  void reduce(mlir::mt::ReduceOp op);
  void argmax(mlir::mt::ArgmaxOp op);
  void matmul(mlir::mt::MatmulOp op);
  void copyLine(mlir::Value value, mlir::Value to);
};

} // namespace mtc

#endif
