// SPDX-License-Identifier: Apache-2.0
//
// One kernel on its way to code, and what the code generators for CPUs and GPUs both ask of its body.
#ifndef COMPILER_CODEGEN_COMMON_KERNEL_H
#define COMPILER_CODEGEN_COMMON_KERNEL_H

#include "compiler/codegen/common/Emitter.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/plan/PlanDialect.h"

namespace mtc {

// How a kernel's tiles are counted (runtime/abi/plan.fbs). The same for all targets.
struct Grid {
  int64_t rowsPerTile = 0, innerTiles = 1, elementsPerTile = 0;
};

struct Kernel {
  Emitter &emit;
  mlir::plan::KernelOp op; // body normalised (normalise, below)
  mlir::mt::KernelKind kind;
  Grid grid;
  int64_t shardRows;
  bool fast;
  mlir::Value params, buffers, tileBegin, tileEnd; // the function's arguments

  mlir::Block &body() { return op.getBody().front(); }
  mlir::OperandRange yields() { return body().getTerminator()->getOperands(); }
  mlir::Value buffer(int64_t index) { return emit.loadPointer(buffers, index); }
  mlir::Value argumentBuffer(int64_t index) { return buffer(index); }
  mlir::Value resultBuffer(int64_t index) { return buffer(body().getNumArguments() + index); }
  // Fields of mt_kernel_params, i64.
  mlir::Value rows() { return emit.loadInteger(params, 0); }
  mlir::Value firstRow() { return emit.loadInteger(params, 1); }
  mlir::Value globalRows() { return emit.loadInteger(params, 2); }
  mlir::Value count() { return emit.loadInteger(params, 3); }
  mlir::Value seed() { return emit.loadInteger(params, 4); }
  // What mt.batch_size is: an f32.
  mlir::Value batchSize();
};

// Types of values in a body.
inline mlir::RankedTensorType tensorOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}
inline bool isSplit(mlir::Value value) { return tensorOf(value).getRank() > 0 && tensorOf(value).isDynamicDim(0); }
// Dimensions of one row of a split value; of the whole of any other.
llvm::ArrayRef<int64_t> innerShape(mlir::Value value);
int64_t innerCount(mlir::Value value);
// Rows of a matrix: elements of a sample, or of the whole of what is not split, by the last axis.
int64_t linesOf(mlir::Value value);
inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline mlir::Type elementOf(mlir::Value value) { return tensorOf(value).getElementType(); }

mlir::mt::KernelKind kindOf(mlir::plan::KernelOp op);

// Makes the body easy to write: broadcasts that are more than repetition of one element or leading axes become
// mt.broadcast, and reductions inside a row reduce their last axes.
void normalise(mlir::plan::KernelOp op);

// Element-wise values of 16 lanes (or one scalar), each computed once. `source` gives the lanes of values that are not
// computed here (null: compute).
class LaneBody {
public:
  LaneBody(Kernel &kernel, bool scalar, std::function<mlir::Value(mlir::Value)> source)
      : kernel(kernel), scalar(scalar), source(std::move(source)) {}
  mlir::Value get(mlir::Value value);
  void set(mlir::Value value, mlir::Value computed) { known[value] = computed; }

private:
  Kernel &kernel;
  bool scalar;
  std::function<mlir::Value(mlir::Value)> source;
  llvm::DenseMap<mlir::Value, mlir::Value> known;
};

// The lanes of mt.random_uniform whose first is element `element` (i64) of the global tensor, or that element alone;
// `step` is an i32 or null.
mlir::Value emitUniform(Kernel &kernel, mlir::mt::RandomUniformOp op, mlir::Value element, mlir::Value step,
                        bool scalar = false);

} // namespace mtc

#endif
