// SPDX-License-Identifier: Apache-2.0
//
// The operations of one row (or of a whole kernel without rows) as straight-line steps. A step is either one loop over the flat
// elements of a row, in which element-wise operations and full sums are fused, or one operation that moves data; a
// convolution has element-wise operations on its result beside it.
#ifndef COMPILER_CODEGEN_ROWS_H
#define COMPILER_CODEGEN_ROWS_H

#include "compiler/codegen/Kernel.h"
#include <memory>

namespace mtc {

class ConvEmitter;

struct RowStep {
  bool loop;      // fused; else `operations` is one, or a convolution and what follows it
  int64_t count;  // elements of the loop
  int64_t period; // of operands that repeat along the loop, and of sums over its first axes; 0: none
  llvm::SmallVector<mlir::Operation *> operations;
};

// Splits operations, in program order, into steps that run in order.
std::vector<RowStep> planSteps(llvm::ArrayRef<mlir::Operation *> operations);

// The value whose memory `value` is: reshapes and broadcasts that move nothing have none of their own.
mlir::Value resolve(mlir::Value value);

// A value that repeats its operand, of this many elements, from first to last; 0 for any other. Loops read it where it is used.
int64_t periodOf(mlir::Value value);
// Elements of the result of a reduction over the first axes of a row, more than one; 0 for any other.
int64_t leadingPeriod(mlir::Operation *op);

// Whether an operation outside of the step reads `value`.
bool isReadOutside(const RowStep &step, mlir::Value value);
// Values that steps may write to a result's buffer, and which result's. The buffer may be an operand's (an update in place), but for
// kernels of rows: so no later step reads an operand, and no operation that moves data reads one in the same step.
llvm::DenseMap<mlir::Value, int64_t> directResults(Kernel &kernel, llvm::ArrayRef<RowStep> steps);
// Operations of a kernel's body whose result has rows, or has none.
llvm::SmallVector<mlir::Operation *> operationsOf(Kernel &kernel, bool split);
// A constant's elements, in memory of their own or (of one element) as a scalar.
mlir::Value constantPlace(Emitter &emit, mlir::mt::ConstantOp constant);
mlir::Value constantScalar(Emitter &emit, mlir::mt::ConstantOp constant);

class RowEmitter {
public:
  explicit RowEmitter(Kernel &kernel);
  ~RowEmitter();

  // Elements of a body value lie at `pointer`, row major.
  void bind(mlir::Value value, mlir::Value pointer) { places[value] = pointer; }
  // Results are wanted at these places, one a yield.
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
  llvm::DenseMap<mlir::Value, mlir::Value> places;  // values in memory
  llvm::DenseMap<mlir::Value, mlir::Value> scalars; // values of one element that are known
  llvm::DenseMap<mlir::Value, mlir::Value> splats;  // values of one element, in the lanes of the loop being written

  static constexpr int64_t scratchLimit = 1 << 22;
  int64_t temporaries = 0; // bytes
  mlir::LogicalResult tooLarge();

  // Values that steps write to a result directly.
  llvm::DenseMap<mlir::Value, int64_t> direct;
  void allocate(llvm::ArrayRef<RowStep> steps, size_t at);

  mlir::Value scalarOf(mlir::Value value);
  mlir::Value placeOf(mlir::Value value);
  void define(mlir::Value value, mlir::Value scalar);

  // Sixteen elements of a loop, the last ones perhaps masked; in a step with a period `inner` is the place in it and `pixel` its number.
  struct Chunk {
    mlir::Value index, mask, inner, pixel;
    bool scalar;
  };
  mlir::LogicalResult runLoop(const RowStep &step);
  mlir::LogicalResult runChunk(const RowStep &step, const Chunk &chunk, llvm::SmallVectorImpl<mlir::Value> &sums);
  mlir::Value sourceOf(const RowStep &step, const Chunk &chunk, mlir::Value value);
  mlir::Value lanesOf(mlir::mt::IotaOp iota, const Chunk &chunk);
  mlir::LogicalResult runPeriods(const RowStep &step, llvm::SmallVectorImpl<mlir::Value> &sums);
  // Sums over the first axes: sixteen lines of partial ones in memory (Periods.cpp).
  llvm::DenseMap<mlir::Operation *, mlir::Value> lines;
  void beginLines(const RowStep &step);
  void addToLines(mlir::mt::ReduceOp op, const Chunk &chunk, mlir::Value value);
  void endLines(const RowStep &step);
  mlir::LogicalResult runMove(mlir::Operation *op);
  // Convolutions (RowProduct.cpp).
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<ConvEmitter>> convolutions;
  mlir::LogicalResult runConvolution(const RowStep &step);
  mlir::Value reduceLine(mlir::mt::Reduction kind, mlir::Type element, mlir::Value place, int64_t count);
  // Where a value lies as f32: a copy of one of bf16 or f16.
  mlir::Value floatsOf(mlir::Value value);
  void move(mlir::Value value, mlir::Value from, llvm::ArrayRef<int64_t> strides);
  void reduce(mlir::mt::ReduceOp op);
  void argmax(mlir::mt::ArgmaxOp op);
  void matmul(mlir::mt::MatmulOp op);
  // Operations of SpatialMoves.cpp; false for any other.
  bool runSpatial(mlir::Operation *op);
  void pad(mlir::mt::PadOp op, mlir::Value to);
  void slice(mlir::mt::SliceOp op, mlir::Value to);
  void concat(mlir::mt::ConcatOp op, mlir::Value to);
  void reverse(mlir::mt::ReverseOp op, mlir::Value to);
  void take(mlir::mt::TakeOp op, mlir::Value to);
  void indexAdd(mlir::mt::IndexAddOp op, mlir::Value to);
  void copyLine(mlir::Value value, mlir::Value to);
};

} // namespace mtc

#endif
